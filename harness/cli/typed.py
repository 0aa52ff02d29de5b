"""The same commands for Typer, which reads every command line that is not plain, explains mistakes and writes the help."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer
from typer._completion_classes import completion_init

from harness.cli.declare import Argument, Function, Option


class App(typer.Typer):
    """Takes commands that are declared with light words."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        register = super().command(name, **settings)
        return lambda function: register(_typed(function))

    def callback(self, **settings: Any) -> Callable[[Function], Function]:
        register = super().callback(**settings)
        return lambda function: register(_typed(function))


def call(app: App, argv: list[str]) -> object:
    """What the command returns; raises what it and Typer raise."""
    if "_ORCHESTRIX_COMPLETE" in os.environ:
        completion_init()
    return typer.main.get_command(app)(argv, standalone_mode=False, prog_name="orchestrix")


def _typed(function: Function) -> Function:
    hints = get_type_hints(function, include_extras=True)
    function.__annotations__ = {name: _hint(hint) for name, hint in hints.items()}
    return function


def _hint(hint: Any) -> Any:
    said = getattr(hint, "__metadata__", (None,))[0]
    if isinstance(said, Option):
        return Annotated[hint.__origin__, typer.Option(*said.names, help=said.help, metavar=said.metavar, min=said.min)]
    if isinstance(said, Argument):
        return Annotated[hint.__origin__, typer.Argument(help=said.help, metavar=said.metavar)]
    return hint
