"""`orchestrix logs`: what a step's programs printed."""

from __future__ import annotations

import sys
from typing import Annotated

from harness.cli import options, output, streams
from harness.cli.declare import App, Option
from harness.cli.options import Directory, Run, StepArgument
from harness.errors import NotFound


def register(app: App) -> None:
    @app.command()
    def logs(
        run: Run = "latest",
        step: StepArgument = None,
        directory: Directory = None,
        raw: Annotated[bool, Option("--raw", help="Do not neutralise control characters.")] = False,
    ) -> None:
        """Print the output of the programs that STEP of RUN ran (all steps by default)."""
        from harness.cli import select  # noqa: PLC0415 - loaded with the log
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run)
        folder = project.runs_dir / run_id / "logs"
        wanted = [f"step-{item.task_id}-" for item in select.steps(project.log(run_id).state(run_id), step)]
        found = [path for prefix in wanted for path in sorted(folder.glob(f"{prefix}*.log"))]
        if not found:
            raise NotFound(f"run {run_id} has no output for that", hint="steps made of actions print nothing")
        for path in found:
            output.line(f"==> {path.name} <==")
            with path.open("rb") as file:
                for part in file:
                    if raw:
                        sys.stdout.buffer.write(part)
                    else:
                        output.line(part.decode("utf-8", "replace").rstrip("\r\n"))
            sys.stdout.flush()
            if streams.is_unread():
                return
