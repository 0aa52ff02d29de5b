"""`orchestrix land`: move a branch to the integrated result."""

from __future__ import annotations

from typing import Annotated

from harness.cli import options, output
from harness.cli.declare import App, Option
from harness.cli.options import Directory, Json, Run


def register(app: App) -> None:
    @app.command()
    def land(
        run: Run = "latest",
        into: Annotated[str | None, Option(metavar="BRANCH", help="The branch (default: the run's).")] = None,
        partial: Annotated[bool, Option("--partial", help="Land what was merged although steps failed.")] = False,
        directory: Directory = None,
        as_json: Json = False,
    ) -> None:
        """Fast-forward the branch, and the checkout it is checked out in, or refuse with the reason."""
        from harness.cli import outcome  # noqa: PLC0415 - loaded with the log
        from harness.model.ids import RefName  # noqa: PLC0415 - as above
        from harness.runs import land as landing  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        state = landing.land(project, project.find_run(run), into, partial=partial)
        if not as_json:
            outcome.landed(project, state)
            return
        made = landing.last(state) or {"target": state.target, "old": None, "new": None}
        output.emit(
            {
                "run_id": state.run_id,
                "target": RefName(made["target"]).short if made["target"] else None,
                "old": made["old"],
                "head": made["new"],
                "undo": f"orchestrix undo {state.run_id}" if made["new"] else None,
            }
        )
