"""`orchestrix restore`: kept work as a branch."""

from __future__ import annotations

from harness.cli import options, output
from harness.cli.declare import App
from harness.cli.options import Directory, Json, Run, StepArgument


def register(app: App) -> None:
    @app.command()
    def restore(run: Run, step: StepArgument = None, directory: Directory = None, as_json: Json = False) -> None:
        """Bring kept attempts of RUN (or of one STEP) back as branches."""
        from harness.runs import restore as restoring  # noqa: PLC0415 - loaded with the log
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run)
        found = restoring.restore(project, run_id, step)
        if as_json:
            rows = [
                {
                    "step": row.step.step_idx,
                    "task_id": row.step.task_id,
                    "branch": row.branch.short,
                    "commit": row.commit,
                    "kept": row.kept or None,
                }
                for row in found
            ]
            output.emit({"run_id": run_id, "restored": rows})
            return
        for row in found:
            kept = f", {row.kept}" if row.kept else ""
            output.line(f"step {row.step.task_id}{kept}: {row.branch.short} at {row.commit[:12]}")
