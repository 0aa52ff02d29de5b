"""`orchestrix undo`: take a landing back."""

from __future__ import annotations

from typing import Annotated

from harness.cli import options, output
from harness.cli.declare import App, Argument
from harness.cli.options import Directory, Json


def register(app: App) -> None:
    @app.command()
    def undo(
        run: Annotated[str | None, Argument(metavar="RUN", help="The run (default: the one landed last).")] = None,
        directory: Directory = None,
        as_json: Json = False,
    ) -> None:
        """Take the last landing back, if nothing came after it; changes of yours in other files stay."""
        from harness.model.ids import RefName  # noqa: PLC0415 - loaded with the log
        from harness.runs import land as landing  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        state, undone = landing.undo(project, None if run is None else project.find_run(run))
        target = RefName(undone.target).short
        if as_json:
            output.emit({"run_id": state.run_id, "target": target, "old": undone.old, "head": undone.new})
            return
        output.line(f"{target}: {undone.old[:12]}..{undone.new[:12] if undone.new else 'gone'}")
        output.line(f"to land it again: orchestrix land {state.run_id}")
