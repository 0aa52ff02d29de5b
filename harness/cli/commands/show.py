"""`orchestrix show`: one step in full, contract included."""

from __future__ import annotations

from harness.cli import options, output
from harness.cli.declare import App
from harness.cli.options import Directory, Json, Run, StepArgument


def register(app: App) -> None:
    @app.command()
    def show(
        run: Run = "latest", step: StepArgument = None, directory: Directory = None, as_json: Json = False
    ) -> None:
        """Show the plan of RUN, or one STEP with its contract."""
        from harness.cli import select  # noqa: PLC0415 - loaded with the log
        from harness.model import view  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run)
        state = project.log(run_id).state(run_id)
        if step is None:
            data = {**view.run(state, held=False), "plan": dict(state.plan), "plan_path": state.plan_path}
        else:
            item = select.step(state, step)
            data = {**view.step(item, run_id), "contract": dict(item.contract)}
        if as_json:
            output.emit(data)
        else:
            output.line(output.as_json_text(data, indent=2))
