"""`orchestrix version`."""

from __future__ import annotations

from harness import __version__
from harness.cli import output
from harness.cli.declare import App
from harness.cli.options import Json


def register(app: App) -> None:
    @app.command()
    def version(as_json: Json = False) -> None:
        """Print the version."""
        if as_json:
            output.emit({"version": __version__})
        else:
            output.line(f"orchestrix {__version__}")
