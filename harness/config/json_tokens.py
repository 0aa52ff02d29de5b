"""JSON as tokens with places; the standard parser judges the text, a scan finds the places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from harness.config.tree import Fault, Place, Token, number

_PIECE = re.compile(r'\s+|[,:]|(?P<open>[{\[])|(?P<close>[}\]])|(?P<text>"(?:[^"\\]|\\.)*")|(?P<word>[^\s,:{}\[\]"]+)')
_WORDS = {"null": None, "true": True, "false": False}


def is_json(text: str) -> bool:
    """Whether the standard parser takes the text as it is."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a JSON text; raises Fault."""
    try:
        json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise _fault(text, error) from error
    except RecursionError as error:
        raise Fault(Place(1, 1), "is nested too deeply", "a plan needs about five levels") from error
    except ValueError as error:
        raise Fault(Place(1, 1), f"is not JSON: {error}", "write a smaller number") from error
    line, line_start = 1, 0
    for piece in _PIECE.finditer(text):
        place = Place(line, piece.start() - line_start + 1)
        if piece.lastgroup is not None:
            yield _token(piece, place)
        elif "\n" in piece[0]:
            line += piece[0].count("\n")
            line_start = piece.start() + piece[0].rindex("\n") + 1


def _fault(text: str, error: json.JSONDecodeError) -> Fault:
    """The same for every Python: 3.13 points to a comma that is too much, older ones to the bracket after it."""
    told = error.msg.startswith(("Expecting", "Illegal trailing comma"))
    before = text[: error.pos + 1].rstrip(" \t\r\n")
    before = before[:-1].rstrip() if before.endswith(("]", "}")) else before
    if told and before.endswith(",") and text[len(before) :].lstrip().startswith(("]", "}")):
        at = len(before) - 1
        place = Place(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
        return Fault(place, "is not JSON: a comma before the end", "remove the comma")
    return Fault(Place(error.lineno, error.colno), f"is not JSON: {error.msg}", "check commas and quotes")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a finite number")


def _token(piece: re.Match[str], place: Place) -> Token:
    if piece["open"]:
        return Token("map" if piece["open"] == "{" else "list", place)
    if piece["close"]:
        return Token("end", place)
    return Token("scalar", place, _scalar(piece, place))


def _scalar(piece: re.Match[str], place: Place) -> Any:
    value = _WORDS[piece[0]] if piece[0] in _WORDS else json.loads(piece[0])
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        raise Fault(place, "holds half of a surrogate pair, which is not text", "write the character itself")
    return number(piece[0], place) if isinstance(value, float) else value
