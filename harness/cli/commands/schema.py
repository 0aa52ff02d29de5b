"""`orchestrix schema`: the plan's JSON Schema, for editors and machines."""

from __future__ import annotations

import json

import typer


def register(app: typer.Typer) -> None:
    @app.command()
    def schema() -> None:
        """Print the JSON Schema of a plan."""
        from harness.config.schema import plan_schema  # noqa: PLC0415 - only this command needs it

        typer.echo(json.dumps(plan_schema(), indent=2, ensure_ascii=False))
