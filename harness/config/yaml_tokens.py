"""YAML as tokens: the 1.2 core types that JSON has too, and everything surprising refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from harness.config.tree import Fault, Place, Token, number

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(("false", "False", "FALSE"), False)
# Numbers as JSON writes them: 010, 0o10, 1_000 and 1:30 mean different things to different readers and stay text.
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def tokens(text: str) -> Iterator[Token]:
    """The tokens of the one document in a text; raises Fault."""
    documents = 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise Fault(_at(event.start_mark), "holds more than one document", "one file is one plan")
            token = _token(event)
            if token is not None:
                yield token
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, text) from error
    except yaml.YAMLError as error:
        raise Fault(Place(1, 1), f"is not YAML: {error}".replace("\n", " ")) from error


def _token(event: yaml.Event) -> Token | None:
    if isinstance(event, yaml.CollectionEndEvent):
        return Token("end", _at(event.start_mark))
    if not isinstance(event, yaml.NodeEvent):
        return None
    place = _at(event.start_mark)
    if isinstance(event, yaml.AliasEvent):
        return Token("alias", place, event.anchor)
    tag = getattr(event, "tag", None)
    if tag is not None:
        raise Fault(place, f"has the tag {tag}; tags are not allowed", "write the value plainly, text in quotes")
    if isinstance(event, yaml.ScalarEvent):
        return Token("scalar", place, _scalar(event, place), event.anchor)
    return Token("map" if isinstance(event, yaml.MappingStartEvent) else "list", place, anchor=event.anchor)


def _scalar(event: yaml.ScalarEvent, place: Place) -> Any:
    text: str = event.value
    plain = event.implicit[0]
    if not plain:
        return text
    if text == "<<":
        raise Fault(place, "merge keys (<<) are not allowed", "use `defaults` for what all steps share")
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NOT_FINITE.fullmatch(text):
        raise Fault(place, f"{text} is not a finite number", "write a number, or text in quotes")
    return number(text, place) if _DECIMAL.fullmatch(text) else text


def _at(mark: Any) -> Place:
    return Place(mark.line + 1, mark.column + 1)


def _syntax(error: yaml.MarkedYAMLError, text: str) -> Fault:
    mark = error.problem_mark or error.context_mark
    place = _at(mark) if mark is not None else Place(1, 1)
    lines = text.splitlines()
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    suggestion = "check indentation, quotes and brackets here and just above"
    if "\t" in line:
        suggestion = "indent with spaces, not tabs"
    elif "mapping values" in str(error.problem):
        suggestion = "put text that holds a colon in quotes"
    what = " ".join(str(part) for part in (error.problem, error.context) if part)
    return Fault(place, f"is not YAML: {what}", suggestion)
