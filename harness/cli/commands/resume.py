"""`orchestrix resume`: carry on with an interrupted run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.cli import options
from harness.cli.declare import App, Option
from harness.cli.options import Budget, Directory, Json, Jsonl, Quiet, Run


def register(app: App) -> None:
    @app.command()
    def resume(
        run: Run = "latest",
        directory: Directory = None,
        accept_changed_plan: Annotated[
            bool, Option("--accept-changed-plan", help="Carry on although the plan file has changed.")
        ] = False,
        land: Annotated[bool, Option("--land", help="Fast-forward the branch when everything succeeded.")] = False,
        from_checkpoint: Annotated[
            Path | None,
            Option("--from-checkpoint", metavar="FILE", help="Make the run anew where its database is gone."),
        ] = None,
        budget: Budget = None,
        as_json: Json = False,
        jsonl: Jsonl = False,
        quiet: Quiet = False,
    ) -> int:
        """Carry on with RUN: finished steps are not run again, nothing is merged twice."""
        from harness.cli import outcome  # noqa: PLC0415 - the engine is loaded by the commands that run
        from harness.runs import budgets, checkpoint  # noqa: PLC0415 - as above
        from harness.runs import resume as resuming  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run) if from_checkpoint is None else checkpoint.restore(project, from_checkpoint)
        project = outcome.listening(project.as_begun(run_id), as_json=as_json, jsonl=jsonl, quiet=quiet)
        outcome.notices(project)
        with outcome.watching(project, as_json=as_json, jsonl=jsonl, quiet=quiet) as watch:
            more = budgets.parse(budget or ())
            state = resuming.resume(project, run_id, watch, accept_changed_plan=accept_changed_plan, budget=more)
        return outcome.finish(project, state, land=land, as_json=as_json, jsonl=jsonl)
