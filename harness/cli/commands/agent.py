"""`orchestrix agent`: a goal becomes merged, verified commits and one answer."""

from __future__ import annotations

from typing import Annotated

from harness.cli import options
from harness.cli.declare import App, Option
from harness.cli.options import Budget, Directory, Jobs, Json, Jsonl, Quiet, Sandbox
from harness.cli.planning import Agents, Checks, ContextFile, Goal, MaxSteps


def register(app: App) -> None:
    @app.command()
    def agent(
        goal: Goal,
        directory: Directory = None,
        base: Annotated[str | None, Option(help="Start from this revision (default: HEAD).")] = None,
        into: Annotated[str | None, Option(metavar="BRANCH", help="The branch to land on.")] = None,
        land: Annotated[bool, Option("--land", help="Fast-forward the branch when everything succeeded.")] = False,
        name: Agents = None,
        check: Checks = None,
        max_steps: MaxSteps = None,
        context: ContextFile = None,
        jobs: Jobs = None,
        sandbox: Sandbox = None,
        budget: Budget = None,
        run_id: Annotated[str | None, Option("--run-id", help="Name the run yourself.")] = None,
        as_json: Json = False,
        jsonl: Jsonl = False,
        quiet: Quiet = False,
    ) -> int:
        """Plan for GOAL, run the plan, and answer with what was done.

        `orchestrix plan` stops after the plan, for review.
        """
        from harness.cli import outcome  # noqa: PLC0415 - the engine is loaded by the commands that run
        from harness.cli import planning as terms  # noqa: PLC0415 - as above
        from harness.runs import budgets, start  # noqa: PLC0415 - as above
        from harness.runs import goal as goals  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory), {"jobs": jobs, "sandbox": sandbox})
        project = outcome.listening(project, as_json=as_json, jsonl=jsonl, quiet=quiet)
        overrides = start.RunOverrides(base=base, into=into, run_id=run_id, budget=budgets.parse(budget or ()))
        wanted = goals.request(project, goal, terms.terms(name, check, max_steps, context), overrides)
        outcome.notices(project)
        with outcome.watching(project, as_json=as_json, jsonl=jsonl, quiet=quiet) as watch:
            state = start.start(project, wanted, overrides, watch)
        return outcome.finish(project, state, land=land, as_json=as_json, jsonl=jsonl)
