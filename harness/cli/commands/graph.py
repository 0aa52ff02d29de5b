"""`orchestrix graph`: the plan, or a registry of supervisors, as a Mermaid picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from harness.cli import options, output
from harness.cli.declare import App, Argument, Option
from harness.cli.options import Directory
from harness.errors import Exit, UsageError


def register(app: App) -> None:
    @app.command()
    def graph(
        plan: Annotated[str | None, Argument(metavar="PLAN", help="The plan file, or - for stdin.")] = None,
        directory: Directory = None,
        registry: Annotated[
            str | None, Option(metavar="MODULE:ATTR", help="Draw a node registry instead of a plan.")
        ] = None,
        supervisors: Annotated[
            str | None, Option(metavar="NAMES", help="Its top-level supervisors, with commas between.")
        ] = None,
    ) -> int:
        """Print Mermaid: what needs what. A registry is validated first; exit 2 when it cannot work."""
        if registry is not None:
            return _registry(registry, supervisors.split(",") if supervisors else None)
        if plan is None:
            raise UsageError("no plan given", hint="orchestrix graph PLAN")
        from harness.model.graph import mermaid  # noqa: PLC0415 - only when there is a plan to draw
        from harness.runs.plans import load  # noqa: PLC0415 - as above

        loaded = load(plan, options.here(directory))
        output.line(mermaid(loaded.plan, loaded.schedule).rstrip("\n"))
        return Exit.OK


def _registry(name: str, supervisors: list[str] | None) -> int:
    from harness.supervisor import diagram, locate, validation  # noqa: PLC0415 - only for --registry

    sys.path.insert(0, str(Path.cwd()))
    found = locate.registry_at(name)
    report = validation.validate(found, supervisors=supervisors)
    for finding in report.findings:
        output.say(f"{finding.level}: {finding.subject}: {finding.message}")
    output.line(diagram.mermaid(found, supervisors=supervisors).rstrip("\n"))
    return Exit.OK if report.ok else Exit.USAGE
