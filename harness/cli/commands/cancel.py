"""`orchestrix cancel`: end a run before its steps are done."""

from __future__ import annotations

from harness.cli import options, output
from harness.cli.declare import App
from harness.cli.options import Directory, Json, Run


def register(app: App) -> None:
    @app.command()
    def cancel(run: Run = "latest", directory: Directory = None, as_json: Json = False) -> None:
        """End RUN: every step that is not done is closed as cancelled, its work is kept."""
        from harness.runs import cancel as cancelling  # noqa: PLC0415 - only this command needs it
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run)
        state = cancelling.cancel(project.as_begun(run_id), run_id, lambda _fact, _state: None)
        if as_json:
            output.emit({"run_id": run_id, "cancelled": True})
            return
        ended = [step for step in state.ordered() if step.close_reason == "cancelled"]
        for step in ended:
            kept = f"; work kept at {step.kept_ref}" if step.kept_ref else ""
            output.line(f"step {step.task_id} cancelled{kept}")
        output.line(f"run {run_id} cancelled: {len(ended)} of {len(state.steps)} steps were not done")
        output.line(f"next: orchestrix resume {run_id} does them anew")
