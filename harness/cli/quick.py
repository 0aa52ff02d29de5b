"""Reads a plain command line by itself, so that a command starts without Typer and what Typer loads.

It takes only what can be read in one way. All else - help, an unknown or repeated option, a value that may be wrong - is
left to Typer, which reads the whole line again and explains what is wrong with it.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from harness.cli.declare import Argument, Function, Option

GROUPS = ("agents", "config")  # they have commands of their own
_DIGITS = 9


class _Unsure(Exception):
    """Typer has to say."""


class _Only:
    """The one command of a file."""

    function: Callable[..., object]

    def command(self, name: str | None = None) -> Callable[[Function], Function]:  # noqa: ARG002 - as every App
        def keep(function: Function) -> Function:
            self.function = function
            return function

        return keep


def understood(argv: Sequence[str], commands: Sequence[str]) -> functools.partial[object] | None:
    """The call that this command line asks for; None where Typer has to read it."""
    if not argv or argv[0] not in commands or argv[0] in GROUPS:
        return None
    found = _Only()
    importlib.import_module(f"harness.cli.commands.{argv[0]}").register(found)
    try:
        values = _values(found.function, argv[1:])
    except _Unsure:
        return None
    return functools.partial(found.function, **values)


def _values(function: Callable[..., object], words: Sequence[str]) -> dict[str, Any]:
    """The parameters that the words give; raises _Unsure."""
    hints = {name: hint for name, hint in get_type_hints(function, include_extras=True).items() if name != "return"}
    said = {name: hint.__metadata__[0] for name, hint in hints.items()}
    places = [name for name, how in said.items() if isinstance(how, Argument)]
    named = {spelled: name for name, how in said.items() for spelled in _spelled(name, how)}
    values: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if word == "-" or not word.startswith("-"):
            name, text = (places.pop(0) if places else None), word
        else:
            option, joined, text = word.partition("=") if word.startswith("--") else (word, "", "")
            name = named.get(option)
            if name and hints[name].__origin__ is bool:
                if joined or not said[name].names:  # one without a name has a second form, --no-...
                    raise _Unsure
                values[name] = True
                continue
            text = text if joined else next(rest, "-")
            if text.startswith("-"):
                raise _Unsure
        if name is None:
            raise _Unsure
        _take(values, name, hints[name].__origin__, text, getattr(said[name], "min", None))
    if len(values.keys() | _optional(function)) < len(hints):
        raise _Unsure
    return values


def _spelled(name: str, how: Option | Argument) -> tuple[str, ...]:
    if isinstance(how, Argument):
        return ()
    return how.names or ("--" + name.replace("_", "-"),)


def _optional(function: Callable[..., object]) -> set[str]:
    """The parameters that have a default; none is keyword-only."""
    code, defaults = function.__code__, function.__defaults__ or ()
    return set(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount])


def _take(values: dict[str, Any], name: str, kind: Any, text: str, least: int | None) -> None:
    kinds = [kind] if get_origin(kind) in (list, Literal) or isinstance(kind, type) else get_args(kind)
    wanted = next(one for one in kinds if one is not type(None))
    if get_origin(wanted) is list:
        values.setdefault(name, []).append(_value(get_args(wanted)[0], text, least))
    elif name in values:
        raise _Unsure
    else:
        values[name] = _value(wanted, text, least)


def _value(kind: Any, text: str, least: int | None) -> object:
    if text and kind in (str, Path):
        return kind(text)
    if kind is int and text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text) >= (least or 0):
        return int(text)
    if text in get_args(kind) and get_origin(kind) is Literal:
        return text
    raise _Unsure
