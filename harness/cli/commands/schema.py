"""`orchestrix schema`: the plan's JSON Schema, for editors and machines."""

from __future__ import annotations

import json
import sys

from harness.cli.declare import App


def register(app: App) -> None:
    @app.command()
    def schema() -> None:
        """Print the JSON Schema of a plan."""
        from harness.config.schema import plan_schema  # noqa: PLC0415 - only this command needs it

        sys.stdout.write(json.dumps(plan_schema(), indent=2, ensure_ascii=False) + "\n")
