"""`orchestrix agent`: a goal becomes merged, verified commits and an answer."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli import options
from harness.cli.options import Directory, Jobs, Json, Jsonl, Quiet, Sandbox
from harness.cli.planning import Agents, Checks, ContextFile, Goal, MaxSteps


def register(app: typer.Typer) -> None:
    @app.command()
    def agent(
        goal: Goal,
        directory: Directory = None,
        agents: Agents = None,
        check: Checks = None,
        max_steps: MaxSteps = None,
        context: ContextFile = None,
        base: Annotated[str | None, typer.Option(help="Start from this revision (default: HEAD).")] = None,
        into: Annotated[str | None, typer.Option(metavar="BRANCH", help="The branch to land on.")] = None,
        land: Annotated[
            bool, typer.Option("--land", help="Fast-forward the branch when everything succeeded.")
        ] = False,
        jobs: Jobs = None,
        sandbox: Sandbox = None,
        run_id: Annotated[str | None, typer.Option("--run-id", help="Name the run yourself.")] = None,
        as_json: Json = False,
        jsonl: Jsonl = False,
        quiet: Quiet = False,
        verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show every event.")] = False,
    ) -> int:
        """Plan GOAL with the configured model, run the plan, answer.

        The plan is in the log before anything starts; `orchestrix plan` stops there, for review.
        """
        from harness.cli import outcome  # noqa: PLC0415 - the engine is loaded by the commands that run
        from harness.cli import planning as terms  # noqa: PLC0415 - as above
        from harness.runs import goal as goals  # noqa: PLC0415 - as above
        from harness.runs.start import Wish  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory), {"jobs": jobs, "sandbox": sandbox})
        wish = Wish(base=base, into=into, run_id=run_id)
        wanted = goals.request(project, goal, terms.terms(agents, check, max_steps, context), wish)
        outcome.notices(project)
        with outcome.watching(project, as_json=as_json, jsonl=jsonl, quiet=quiet, verbose=verbose) as watch:
            state = goals.begin(project, wanted, wish, watch)
        return outcome.finish(project, state, land=land, into=into, as_json=as_json, jsonl=jsonl)
