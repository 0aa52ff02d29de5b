"""`orchestrix restore`: kept work as a branch."""

from __future__ import annotations

from harness.cli import options, output
from harness.cli.declare import App
from harness.cli.options import Directory, Json, Run, StepArgument


def register(app: App) -> None:
    @app.command()
    def restore(run: Run, step: StepArgument = None, directory: Directory = None, as_json: Json = False) -> None:
        """Bring the kept work of RUN (or of one STEP) back as branches."""
        from harness.cli import select  # noqa: PLC0415 - loaded with the log
        from harness.runs import restore as restoring  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run)
        steps = select.steps(project.log(run_id).state(run_id), step)
        if step is None:
            steps = [item for item in steps if item.final_status != "completed"]
        found = restoring.restore(project, run_id, steps)
        if as_json:
            rows = [{"step": item.step_idx, "branch": ref.short, "commit": commit} for item, ref, commit in found]
            output.emit({"run_id": run_id, "restored": rows})
            return
        for item, ref, commit in found:
            output.line(f"step {item.task_id}: {ref.short} at {commit[:12]}")
