"""`orchestrix init`: a first plan and a place for settings."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from harness.cli import options, output
from harness.cli.declare import App
from harness.cli.options import Directory, Json


def register(app: App) -> None:
    @app.command()
    def init(directory: Directory = None, as_json: Json = False) -> None:
        """Put a commented settings file, a sample plan and ignore rules into .orchestrix/; never overwrites."""
        from harness.wiring import locate  # noqa: PLC0415 - loaded when asked for

        folder = locate(options.here(directory)) / ".orchestrix"
        folder.mkdir(exist_ok=True)
        made = [
            name
            for name, source in (
                ("config.toml", "config.toml"),
                ("plan.yaml", "plan.yaml"),
                (".gitignore", "ignore.txt"),
            )
            if _write(folder / name, source)
        ]
        if as_json:
            output.emit({"directory": str(folder), "created": made})
            return
        for name in made:
            output.line(f"created .orchestrix/{name}")
        output.line("next: edit .orchestrix/plan.yaml, then orchestrix validate .orchestrix/plan.yaml")


def _write(path: Path, source: str) -> bool:
    text = (resources.files("harness.cli") / "templates" / source).read_text(encoding="utf-8")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True
