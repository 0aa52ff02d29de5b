"""`orchestrix retry`: a failed step again, and what failed because of it."""

from __future__ import annotations

from typing import Annotated

from harness.cli import options
from harness.cli.declare import App, Argument
from harness.cli.options import Directory, Json, Jsonl, Quiet, Run


def register(app: App) -> None:
    @app.command()
    def retry(
        run: Run,
        step: Annotated[str, Argument(metavar="STEP", help="Step index or id.")],
        directory: Directory = None,
        as_json: Json = False,
        jsonl: Jsonl = False,
        quiet: Quiet = False,
    ) -> int:
        """Run a failed STEP of RUN again, and the steps that failed because of it."""
        from harness.cli import outcome, select  # noqa: PLC0415 - the engine is loaded by the commands that run
        from harness.model.ids import TaskId  # noqa: PLC0415 - as above
        from harness.runs import retry as retrying  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run)
        project = outcome.listening(project.as_begun(run_id), as_json=as_json, jsonl=jsonl, quiet=quiet)
        outcome.notices(project)
        task = TaskId(select.step(project.reading.state(run_id), step).task_id)
        with outcome.watching(project, as_json=as_json, jsonl=jsonl, quiet=quiet) as watch:
            state = retrying.retry(project, run_id, task, watch)
        return outcome.finish(project, state, as_json=as_json, jsonl=jsonl)
