"""`orchestrix completion`: shell completion scripts."""

from __future__ import annotations

from typing import Annotated

from harness.cli.declare import App, Argument
from harness.errors import UsageError

_SHELLS = ("bash", "zsh", "fish")


def register(app: App) -> None:
    @app.command()
    def completion(
        shell: Annotated[str, Argument(metavar="SHELL", help="bash, zsh or fish.")] = "bash",
    ) -> None:
        """Print the completion script for SHELL; source it from your shell's start-up file."""
        import typer  # noqa: PLC0415 - only this command needs it
        from typer._completion_shared import get_completion_script  # noqa: PLC0415 - as above

        if shell not in _SHELLS:
            raise UsageError(f"no completion for {shell!r}", hint=f"one of {', '.join(_SHELLS)}")
        typer.echo(get_completion_script(prog_name="orchestrix", complete_var="_ORCHESTRIX_COMPLETE", shell=shell))
