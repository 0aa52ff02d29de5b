"""`orchestrix agents`: who can do a step, and whether a program keeps what its profile says."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli import options, output
from harness.cli.declare import Argument
from harness.cli.options import Directory, Json
from harness.cli.typed import App
from harness.errors import Exit

Name = Annotated[str, Argument(metavar="NAME", help="An agent that has a profile.")]


def register(app: App) -> None:
    group = App(help="Who can do a step.")

    @group.callback(invoke_without_command=True)
    def agents(context: typer.Context, directory: Directory = None, as_json: Json = False) -> None:
        """List the agents that a plan can name, and what binds each of them."""
        if context.invoked_subcommand is not None:
            return
        from harness.runs import agents as known  # noqa: PLC0415 - loaded when asked for
        from harness.wiring import Project  # noqa: PLC0415 - as above

        rows = known.rows(Project.at(options.here(directory)))
        if as_json:
            output.emit({"agents": [row.as_dict() for row in rows]})
            return
        for row in rows:
            mark = "available" if row.available else "missing"
            output.line(f"{row.name:<16} {row.kind:<10} {mark:<10} {row.version:<10} {row.detail}")
            if row.kind == "profile":
                own = ", ".join(row.program_enforces) or "nothing"
                output.line(f"{'':<16} the program enforces {own}; the sandbox {', '.join(row.sandbox_enforces)}")

    @group.command()
    def check(name: Name, directory: Directory = None, as_json: Json = False) -> None:
        """Try the installed program of an agent against a scripted model: no key, no network."""
        from harness.runs import agents as known  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        found = known.claims(
            Project.at(options.here(directory)),
            name,
            lambda claim: None if as_json else output.line(_line(claim.name, claim.detail, ok=claim.ok)),
        )
        if as_json:
            output.emit({"agent": name, "claims": [claim.as_dict() for claim in found]})
        if not all(claim.ok for claim in found):
            raise typer.Exit(Exit.STEP_FAILED)

    app.add_typer(group, name="agents")


def _line(name: str, detail: str, *, ok: bool) -> str:
    return f"{'ok  ' if ok else 'FAIL'} {name}" + (f": {detail}" if detail else "")
