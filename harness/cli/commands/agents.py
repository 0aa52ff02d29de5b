"""`orchestrix agents`: who can do a step."""

from __future__ import annotations

import typer

from harness.cli import options, output
from harness.cli.options import Directory, Json


def register(app: typer.Typer) -> None:
    @app.command()
    def agents(directory: Directory = None, as_json: Json = False) -> None:
        """List the agents that a plan can name."""
        from harness.wiring import Project  # noqa: PLC0415 - loaded when asked for

        known = Project.at(options.here(directory)).agents
        rows = [
            {"name": row.name, "kind": row.kind, "available": row.usable, "detail": row.detail}
            for row in map(known.available, known.names)
        ]
        if as_json:
            output.emit({"agents": rows})
            return
        for row in rows:
            mark = "available" if row["available"] else "missing"
            output.line(f"{row['name']:<12} {row['kind']:<10} {mark:<10} {row['detail']}")
