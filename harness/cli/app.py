"""Finds the command, loads only its file, and turns every error into one line and an exit status."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from harness.cli import output, quick, streams
from harness.cli.declare import Option
from harness.errors import EnvironmentProblem, Exit, OrchestrixError, UsageError

if TYPE_CHECKING:
    from harness.cli.typed import App

COMMANDS = (
    "init",
    "schema",
    "validate",
    "graph",
    "plan",
    "agent",
    "run",
    "resume",
    "retry",
    "approve",
    "reject",
    "cancel",
    "ci",
    "list",
    "status",
    "show",
    "events",
    "logs",
    "report",
    "diff",
    "land",
    "undo",
    "clean",
    "restore",
    "record",
    "doctor",
    "agents",
    "tools",
    "trust",
    "audit",
    "metrics",
    "trace",
    "config",
    "demo",
    "version",
    "completion",
)


def build(names: tuple[str, ...]) -> App:
    """A Typer app with these commands; loading one command keeps start-up near bare Python's."""
    from harness.cli.typed import App  # noqa: PLC0415 - a plain command line is read without it

    app = App(
        name="orchestrix",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help="Turns a plan into merged, verified commits: one agent, one worktree, one contract for each step.",
    )

    @app.callback()
    def root(
        directory: Annotated[str, Option("-C", metavar="DIR", help="Work as if started in DIR.")] = "",
        version: Annotated[bool, Option("--version", "-V", help="Print the version and exit.")] = False,
    ) -> None:
        if version:
            import typer  # noqa: PLC0415 - loaded already

            from harness import __version__  # noqa: PLC0415 - rarely needed

            typer.echo(f"orchestrix {__version__}")
            raise typer.Exit
        if directory:
            _enter(directory)

    for name in names:
        importlib.import_module(f"harness.cli.commands.{name}").register(app)
    return app


def _enter(directory: str) -> None:
    try:
        os.chdir(directory)
    except OSError as error:
        raise UsageError(
            f"cannot work in {directory}: {error.strerror}", hint="give -C an existing directory"
        ) from error


def _wanted(argv: list[str]) -> str | None:
    """The command, if nothing but -C stands before it."""
    words = iter(argv)
    for word in words:
        if word != "-C":
            return word
        next(words, None)
    return None


def _called(argv: list[str]) -> object:
    """What the command returned; raises what it raises, and Typer's errors."""
    plain = None if "_ORCHESTRIX_COMPLETE" in os.environ else quick.understood(argv, COMMANDS)
    if plain is None:
        from harness.cli import typed  # noqa: PLC0415 - as above

        wanted = _wanted(argv)
        return typed.call(build((wanted,) if wanted in COMMANDS else COMMANDS), argv)
    try:
        return plain()
    except KeyboardInterrupt:
        return Exit.SIGINT  # the person knows; Typer says nothing either


def run(argv: list[str]) -> int:
    """The exit status of this call; never a traceback for what a user or the environment did."""
    as_json = "--json" in argv
    output.begin()
    try:
        result = _called(argv)
        sys.stdout.flush()
        return result if isinstance(result, int) else Exit.OK
    except OrchestrixError as error:
        return _told(error, as_json=as_json)
    except KeyboardInterrupt:
        _told(OrchestrixError("interrupted"), as_json=as_json)
        return Exit.SIGINT
    except OSError as error:
        machine = EnvironmentProblem(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
        return _told(machine, as_json=as_json)
    except Exception as error:  # noqa: BLE001 - a mistake that Typer found, or a bug
        problem = _unforeseen(error, argv)
        return _told(problem, as_json=as_json and not output.told_by_envelope())


def _unforeseen(error: Exception, argv: list[str]) -> OrchestrixError:
    if hasattr(error, "format_message"):
        return UsageError(error.format_message(), hint="see orchestrix --help")
    from harness.runs import crash  # noqa: PLC0415 - hopefully never

    return crash.report(error, argv, _directory(argv))


def _directory(argv: list[str]) -> Path:
    """The directory that the call worked on."""
    named = argv[argv.index("-C") + 1 :][:1] if "-C" in argv else []
    return Path(*named).resolve()


def _told(error: OrchestrixError, *, as_json: bool) -> int:
    """The exit status of this error; what stdout cannot take (its disk is full) goes to stderr."""
    output.failure(error, as_json=as_json)
    if as_json and streams.lost():
        output.failure(error, as_json=False)
    return error.exit_code
