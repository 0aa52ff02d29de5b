"""How a command says what it takes: light words that both readers of the command line understand.

Typer's own classes are not used here: loading them, and what they build for each option, costs more than most commands do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class Option:
    """`--name VALUE`, or a flag; without a name, the parameter's own is used."""

    def __init__(self, *names: str, help: str, metavar: str | None = None, min: int | None = None) -> None:  # noqa: A002 - Typer's words
        self.names = names
        self.help = help
        self.metavar = metavar
        self.min = min


class Argument:
    """A word that is no option."""

    def __init__(self, *, metavar: str, help: str) -> None:  # noqa: A002 - Typer's word
        self.metavar = metavar
        self.help = help


class App(Protocol):
    """What a command registers itself with."""

    def command(self, name: str | None = None) -> Callable[[Function], Function]: ...
