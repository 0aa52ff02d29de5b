"""`orchestrix trace`: a run as spans."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from harness.cli import options, output
from harness.cli.declare import App, Option
from harness.cli.options import Directory, Json, Run

if TYPE_CHECKING:
    from harness.model.spans import Span


def register(app: App) -> None:
    @app.command()
    def trace(
        run: Run = "latest",
        directory: Directory = None,
        otlp: Annotated[
            str | None, Option("--otlp", metavar="URL", help="Send it to this OpenTelemetry collector.")
        ] = None,
        as_json: Json = False,
    ) -> None:
        """Print RUN as a trace: run, steps, attempts, tool calls and model calls with their times."""
        from harness.runs import otlp as exporter  # noqa: PLC0415 - loaded with the log
        from harness.runs import telemetry  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run)
        spans = telemetry.traced(project.log(run_id), run_id)
        if otlp is not None:
            exporter.send(spans, otlp)
        if as_json:
            output.emit({"run_id": str(run_id), "sent_to": otlp, "spans": [asdict(span) for span in spans]})
        elif otlp is not None:
            output.line(f"{len(spans)} spans sent to {otlp}")
        else:
            _people(spans)


def _people(spans: list[Span]) -> None:
    depths: dict[str | None, int] = {None: -1}
    for span in spans:
        depths[span.span_id] = depth = depths.get(span.parent_id, 0) + 1
        failed = f"  {span.error}" if span.error else ""
        output.line(f"{(span.end - span.start) / 1e9:>9.3f}s  {'  ' * depth}{span.name}{failed}")
