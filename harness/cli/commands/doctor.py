"""`orchestrix doctor`: is this machine ready, and what did crashed runs leave?"""

from __future__ import annotations

from typing import Annotated

from harness.cli import options, output
from harness.cli.declare import App, Option
from harness.cli.options import Directory, Json
from harness.errors import Exit


def register(app: App) -> None:
    @app.command()
    def doctor(
        directory: Directory = None,
        ask_model: Annotated[bool, Option("--ask-model", help="Also ask the configured model for one word.")] = False,
        as_json: Json = False,
    ) -> int:
        """Check git, repository, sandbox, model, log and leftovers; exit 3 when something needed is missing."""
        from harness.runs import doctor as examining  # noqa: PLC0415 - loaded when asked for

        rows = examining.examine(options.here(directory), ask_model=ask_model)
        healthy = all(row.ok or not row.needed for row in rows)
        if as_json:
            output.emit({"healthy": healthy, "checks": [row.as_dict() for row in rows]})
        else:
            for row in rows:
                mark = "ok  " if row.ok else ("FAIL" if row.needed else "note")
                output.line(f"{mark} {row.name}: {row.message}" + (f" ({row.hint})" if row.hint else ""))
        return Exit.OK if healthy else Exit.ENVIRONMENT
