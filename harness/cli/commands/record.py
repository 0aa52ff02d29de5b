"""`orchestrix record`: a run as a file that does its plan again without agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.cli import options, output
from harness.cli.declare import App, Option
from harness.cli.options import Directory, Json, Run


def register(app: App) -> None:
    @app.command()
    def record(
        run: Run = "latest",
        target: Annotated[
            Path | None, Option("-o", "--output", metavar="FILE", help="The file (default: RUN.zip).")
        ] = None,
        directory: Directory = None,
        as_json: Json = False,
    ) -> None:
        """Write what the agents of RUN did to a file for `orchestrix run PLAN --replay FILE`."""
        from harness.runs import record as recording  # noqa: PLC0415 - loaded with the log
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run)
        path = target or Path(f"{run_id}.zip")
        made = recording.record(project, run_id, path)
        attempts = sum(len(step.attempts) for step in made.steps)
        if as_json:
            output.emit({"run_id": run_id, "file": str(path), "steps": len(made.steps), "attempts": attempts})
        else:
            output.line(f"{path}: {len(made.steps)} steps, {attempts} attempts")
            output.line(f"next: orchestrix run PLAN --replay {path}")
