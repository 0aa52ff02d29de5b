"""`orchestrix graph`: the plan, or a registry of supervisors, as a Mermaid picture."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli import options, output
from harness.cli.options import Directory
from harness.errors import UsageError


def register(app: typer.Typer) -> None:
    @app.command()
    def graph(
        plan: Annotated[str | None, typer.Argument(metavar="PLAN", help="The plan file, or - for stdin.")] = None,
        directory: Directory = None,
        registry: Annotated[
            str | None, typer.Option(metavar="MODULE:ATTR", help="Draw a node registry instead of a plan.")
        ] = None,
    ) -> None:
        """Print Mermaid: what needs what."""
        if registry is not None:
            from harness.cli.registries import picture  # noqa: PLC0415 - loads the user's module

            output.line(picture(registry))
            return
        if plan is None:
            raise UsageError("no plan given", hint="orchestrix graph PLAN")
        from harness.model.graph import mermaid  # noqa: PLC0415 - only when there is a plan to draw
        from harness.runs.plans import load  # noqa: PLC0415 - as above

        loaded = load(plan, options.here(directory))
        output.line(mermaid(loaded.plan, loaded.schedule).rstrip("\n"))
