"""`orchestrix cancel`: ask a live run to stop."""

from __future__ import annotations

from harness.cli import options, output
from harness.cli.declare import App
from harness.cli.options import Directory, Json, Run


def register(app: App) -> None:
    @app.command()
    def cancel(run: Run = "latest", directory: Directory = None, as_json: Json = False) -> None:
        """Stop RUN from another terminal; its work is kept and it can be resumed."""
        from harness.runs import cancel as cancelling  # noqa: PLC0415 - only this command needs it
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run)
        cancelling.cancel(project, run_id)
        if as_json:
            output.emit({"run_id": run_id, "cancelled": True})
        else:
            output.line(f"run {run_id} stopped; orchestrix resume {run_id} carries on")
