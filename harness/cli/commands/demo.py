"""`orchestrix demo`: the whole job on a throw-away repository, conflict included."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.cli import output
from harness.cli.declare import App, Argument
from harness.cli.options import Json


def register(app: App) -> None:
    @app.command()
    def demo(
        directory: Annotated[
            Path | None, Argument(metavar="DIR", help="Where to make it (default: a new temporary directory).")
        ] = None,
        as_json: Json = False,
    ) -> int:
        """Make a small repository, run a plan on it (one step conflicts on purpose) and show the reports."""
        from harness.cli import outcome  # noqa: PLC0415 - the engine is loaded by the commands that run
        from harness.runs import demo as demonstrating  # noqa: PLC0415 - as above
        from harness.runs import plans, start  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        root = demonstrating.make(directory)
        project = Project.at(root)
        overrides = start.RunOverrides()
        wanted = start.request(project, plans.load(str(root / ".orchestrix" / "demo.yaml"), root), overrides)
        with outcome.watching(project, as_json=as_json, quiet=False) as watch:
            state = start.start(project, wanted, overrides, watch)
        outcome.finish(project, state, as_json=as_json, advise=False)
        return demonstrating.judge(state, output.say, root)
