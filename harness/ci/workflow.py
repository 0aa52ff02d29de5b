"""Workflow commands: how a line becomes one, and how text from outside never does.

The runner obeys a line that begins with `::` after any white space, and one that holds `##[` anywhere; other systems
know `##name[`. Values inside a command are percent-encoded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_BEGIN = re.compile(r"(^|[\r\n\v\f\x1c-\x1e\x85\u2028\u2029])(\s*)::")
_INSIDE = re.compile(r"(##\w*)\[")
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def command(name: str, message: str = "", properties: Mapping[str, str | int | None] | None = None) -> str:
    """One line that the runner obeys; properties without a value are left out."""
    given = {key: str(value) for key, value in (properties or {}).items() if value not in (None, "")}
    shown = ",".join(f"{key}={_encoded(value, _PROPERTY)}" for key, value in given.items())
    return f"::{name}{' ' if shown else ''}{shown}::{_encoded(message, _DATA)}"


def neutral(text: str) -> str:
    """Text of which no line is a command: the decisive character is spelled as an escape.

    Inside a JSON string the escape means the same character, so JSON stays what it was.
    """
    return _without_old_form(_BEGIN.sub(r"\1\2\\u003a:", text))


def _encoded(text: str, table: Mapping[str, str]) -> str:
    return "".join(table.get(char, char) for char in _without_old_form(text))


def _without_old_form(text: str) -> str:
    return _INSIDE.sub(r"\1\\u005b", text)
