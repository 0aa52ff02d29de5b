"""`orchestrix config show`: every setting and where it comes from."""

from __future__ import annotations

from harness.cli import options, output
from harness.cli.options import Directory, Json
from harness.cli.typed import App


def register(app: App) -> None:
    group = App(no_args_is_help=True, help="Settings and where they come from.")

    @group.callback()
    def config() -> None:
        """Settings and where they come from."""

    @group.command()
    def show(directory: Directory = None, as_json: Json = False) -> None:
        """Print every setting with its value and source."""
        from harness.wiring import Project  # noqa: PLC0415 - loaded when asked for

        rows = [
            {"name": name, "value": value, "source": source}
            for name, value, source in Project.at(options.here(directory)).settings.rows()
        ]
        if as_json:
            output.emit({"settings": rows})
            return
        for row in rows:
            output.line(f"{row['name']} = {row['value']}  ({row['source']})")

    app.add_typer(group, name="config")
