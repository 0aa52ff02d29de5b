"""`orchestrix run`: a plan becomes merged, verified commits."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

from harness.cli import options
from harness.cli.declare import App, Argument, Option
from harness.cli.options import Budget, Directory, Jobs, Json, Jsonl, Quiet, Sandbox, Speculate, Workspace


def register(app: App) -> None:
    @app.command()
    def run(
        plan: Annotated[str, Argument(metavar="PLAN", help="The plan file (YAML or JSON), or - for stdin.")],
        directory: Directory = None,
        base: Annotated[str | None, Option(help="Start from this revision (default: HEAD).")] = None,
        into: Annotated[str | None, Option(metavar="BRANCH", help="The branch to land on.")] = None,
        land: Annotated[bool, Option("--land", help="Fast-forward the branch when everything succeeded.")] = False,
        jobs: Jobs = None,
        sandbox: Sandbox = None,
        workspace: Workspace = None,
        speculate: Speculate = None,
        budget: Budget = None,
        run_id: Annotated[str | None, Option("--run-id", help="Name the run yourself.")] = None,
        keep: Annotated[bool, Option("--keep", help="Leave the workspaces in place.")] = False,
        strict_parent: Annotated[
            bool, Option("--strict-parent", help="Fail steps during which the parent checkout changed.")
        ] = False,
        replay: Annotated[
            Path | None,
            Option("--replay", metavar="FILE", help="Do the steps from a recording; no agent is started."),
        ] = None,
        dry_run: Annotated[bool, Option("--dry-run", help="Check everything, start nothing.")] = False,
        as_json: Json = False,
        jsonl: Jsonl = False,
        quiet: Quiet = False,
        verbose: Annotated[bool, Option("-v", "--verbose", help="Show every event.")] = False,
    ) -> int:
        """Run PLAN: every step in its own worktree, merged in plan order.

        The result stays on orchestrix/RUN/integration until you land it.
        """
        from harness.wiring import Project  # noqa: PLC0415 - the engine is loaded by the commands that run

        flags = {
            "jobs": jobs,
            "sandbox": sandbox,
            "workspace.kind": workspace,
            "speculate": speculate,
            "keep": keep or None,
            "strict_parent": strict_parent or None,
        }
        here = options.here(directory)
        project = dataclasses.replace(Project.at(here, flags), recording=replay)
        project.begin(None if dry_run or into else base or "HEAD")
        from harness.cli import outcome  # noqa: PLC0415 - meanwhile others work on what was begun
        from harness.runs import budgets, plans, start  # noqa: PLC0415 - as above

        loaded = plans.load(plan, here)
        overrides = start.RunOverrides(base=base, into=into, run_id=run_id, budget=budgets.parse(budget or ()))
        wanted = start.request(project, loaded, overrides)
        if dry_run:
            return outcome.dry_run(loaded, wanted, as_json=as_json)
        outcome.notices(project)
        with outcome.watching(project, as_json=as_json, jsonl=jsonl, quiet=quiet, verbose=verbose) as watch:
            state = start.start(project, wanted, overrides, watch)
        return outcome.finish(project, state, land=land, as_json=as_json, jsonl=jsonl)
