"""`orchestrix diff`: what a run or one of its steps changed."""

from __future__ import annotations

import sys

from harness.cli import options
from harness.cli.declare import App
from harness.cli.options import Directory, Run, StepArgument
from harness.errors import NotFound


def register(app: App) -> None:
    @app.command()
    def diff(run: Run = "latest", step: StepArgument = None, directory: Directory = None) -> None:
        """Print the changes of RUN against its base, or of one STEP against its start point, failed ones included."""
        from harness.cli import output, select  # noqa: PLC0415 - loaded with the log
        from harness.model.ids import CommitId  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run)
        state = project.log(run_id).state(run_id)
        old, new = state.base, state.head
        if step is not None:
            item = select.step(state, step)
            if not item.start_point or not item.commit:
                raise NotFound(f"step {item.task_id} of run {run_id} left no snapshot", hint="see `orchestrix report`")
            old, new = item.start_point, item.commit
        raw = project.repository.diff(CommitId(old), CommitId(new))
        if sys.stdout.isatty():
            output.line(raw.decode("utf-8", "replace").rstrip("\n"))
        else:
            sys.stdout.buffer.write(raw)
