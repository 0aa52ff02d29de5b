"""`orchestrix metrics`: numbers for a dashboard."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from harness.cli import options, output
from harness.cli.declare import App, Option
from harness.cli.options import Directory, Json, Run


def register(app: App) -> None:
    @app.command()
    def metrics(
        run: Run = "latest",
        directory: Directory = None,
        everything: Annotated[bool, Option("--all", help="Every run of this repository.")] = False,
        to: Annotated[
            Path | None, Option("-o", "--output", metavar="FILE", help="Replace FILE, whole or not at all.")
        ] = None,
        as_json: Json = False,
    ) -> None:
        """Print the metrics of RUN in the text format of Prometheus."""
        from harness.runs import telemetry  # noqa: PLC0415 - loaded with the log
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        chosen = project.reading.run_ids() if everything else [project.find_run(run)]
        logs = [(log := project.log(run_id), log.state(run_id)) for run_id in chosen]
        samples = [(state, telemetry.measured(log, state)) for log, state in logs]
        if as_json:
            output.emit({"runs": [{"run_id": state.run_id, **asdict(found)} for state, found in samples]})
        elif to is not None:
            telemetry.write(to, samples)
        else:
            sys.stdout.write(telemetry.exposed(samples))
