"""Validation errors in the words of a plan's author: one for each mistake, at the value that holds it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from harness.config.tree import Path
from harness.model import plan as model
from harness.model.needs import Problem

_COMMAND = "a command is text, which `sh -c` runs, or a list of arguments"
_FORMS = {
    "checks": f"{_COMMAND}; a check may also be {{run: command, may_fail_on_base: true}}",
    "success_criteria": "a criterion is one line of text, or {text: ..., check: command}",
    "needs": "a need is the index (from 0) or the id of an earlier step",
    "setup": "setup is one command as text, or a list of commands",
    "candidates": "candidates is a whole number, or a list of agents",
}
_MODELS: dict[tuple[str, ...], type[BaseModel]] = {
    (): model.Plan,
    ("defaults",): model.Defaults,
    ("steps",): model.Step,
    ("steps", "actions"): model.Action,
    ("steps", "actions", "write_file"): model.WriteFile,
    ("steps", "actions", "edit_file"): model.EditFile,
    ("steps", "actions", "delete_file"): model.DeleteFile,
    ("steps", "actions", "move_file"): model.MoveFile,
    ("steps", "actions", "apply_patch"): model.ApplyPatch,
    **{(where, "checks"): model.Check for where in ("steps", "defaults")},
    **{(where, "success_criteria"): model.Criterion for where in ("steps", "defaults")},
}
_PATTERNS = {
    "agent": "must be lower-case letters, digits, - and _ (at most 63, no - or _ first)",
    "env": "must be the name of an environment variable: letters, digits and _",
    "allowed_tools": "must be the name of a tool: letters, digits and _ . : * / -",
    "title": "must be one line without control characters",
}
_PATTERNS |= dict.fromkeys(("id", "needs", "candidates"), _PATTERNS["agent"])
_PATTERNS |= {"success_criteria": _PATTERNS["title"], "text": _PATTERNS["title"]}


def explain(errors: Iterable[Mapping[str, Any]], data: Any) -> list[Problem]:
    """Pydantic's errors about `data`, without the branches of a union that the value was never meant for."""
    problems: dict[Path, Problem] = {}
    told: set[Path] = set()
    unions: list[Path] = []
    for error in errors:
        path, meant = _locate(error["loc"], data)
        if not meant:
            unions.append(path)
        elif path not in problems:
            problems[path] = Problem(path, *_told(error, path))
            told.update(path[:size] for size in range(len(path) + 1))
    for path in sorted(unions, key=len, reverse=True):
        if path not in told:
            problems[path] = Problem(path, _FORMS.get(_field(path), _COMMAND))
            told.update(path[:size] for size in range(len(path) + 1))
    return list(problems.values())


def _locate(loc: tuple[str | int, ...], data: Any) -> tuple[Path, bool]:
    """The path within the data, and whether the error is about what the value was meant to be."""
    path: list[str | int] = []
    here = data
    for part in loc:
        inside = part in here if isinstance(here, dict) else isinstance(here, list) and isinstance(part, int)
        if inside:
            path.append(part)
            here = here[part]
        elif isinstance(here, dict) and isinstance(part, str) and part.islower() and part.isidentifier():
            path.append(part)  # a field that is missing
        elif part != "[key]" and not _fits(str(part), here):
            return tuple(path), False
    return tuple(path), True


def _fits(branch: str, value: Any) -> bool:
    """Whether a value has the type of one branch of a union, by the name that pydantic gives the branch."""
    if branch.startswith("list["):
        return isinstance(value, list)
    if branch.startswith("constrained-"):
        return type(value) is (str if branch == "constrained-str" else int)
    return isinstance(value, dict)


def _field(path: Path) -> str:
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def _told(error: Mapping[str, Any], path: Path) -> tuple[str, str]:
    tell = _MESSAGES.get(error["type"])
    if tell is not None:
        return tell(error["input"], path, error.get("ctx", {}))
    return str(error["msg"]), ""


def _unknown(_value: Any, path: Path, _ctx: Mapping[str, Any]) -> tuple[str, str]:
    owner = _MODELS.get(tuple(part for part in path[:-1] if isinstance(part, str)), model.Step)
    known = [info.alias or name for name, info in owner.model_fields.items()]
    import difflib  # noqa: PLC0415 - a good plan does not pay for it

    close = difflib.get_close_matches(str(path[-1])[:80].lower(), known, n=1)
    return "unknown field", f"did you mean {close[0]}?" if close else f"known fields: {', '.join(known)}"


def _not_text(value: Any, _path: Path, _ctx: Mapping[str, Any]) -> tuple[str, str]:
    quotable = isinstance(value, bool | int | float)
    return f"must be text, not {_kind(value)}", f"write it in quotes: {_quoted(str(value).lower())}" if quotable else ""


def _not_list(value: Any, path: Path, _ctx: Mapping[str, Any]) -> tuple[str, str]:
    message = f"must be a list, not {_kind(value)}"
    if not isinstance(value, str | int):
        return message, ""
    if _field(path) != "command" or not isinstance(value, str):
        return message, f"write [{_quoted(value)}]"
    try:
        arguments = shlex.split(value)
    except ValueError:
        arguments = ["sh", "-c", value]
    return "must be a list of arguments, not text", f"write {_quoted(arguments)}"


def _not_mapping(value: Any, _path: Path, _ctx: Mapping[str, Any]) -> tuple[str, str]:
    return f"must be fields with values, not {_kind(value)}", ""


def _not_truth(value: Any, _path: Path, _ctx: Mapping[str, Any]) -> tuple[str, str]:
    meant = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(str(value).lower())
    return f"must be true or false, not {_kind(value)}", f"write {meant}" if meant else ""


def _not_whole(value: Any, _path: Path, _ctx: Mapping[str, Any]) -> tuple[str, str]:
    plain = isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value)
    return f"must be a whole number, not {_kind(value)}", f"write {int(value)} without quotes" if plain else ""


def _not_choice(value: Any, _path: Path, ctx: Mapping[str, Any]) -> tuple[str, str]:
    choices = re.findall(r"'([^']*)'", ctx["expected"]) or [ctx["expected"]]
    import difflib  # noqa: PLC0415 - a good plan does not pay for it

    close = difflib.get_close_matches(str(value)[:80].lower(), choices, n=1)
    return f"must be {' or '.join(choices)}", f"write {close[0]}" if close else ""


def _empty(_value: Any, _path: Path, ctx: Mapping[str, Any]) -> tuple[str, str]:
    few = ctx.get("min_length", 1)
    return "must not be empty" if few == 1 else f"must have at least {few} entries", "remove the field, or fill it"


def _mismatch(value: Any, path: Path, _ctx: Mapping[str, Any]) -> tuple[str, str]:
    if "\x00" in value:
        return "holds a NUL character", "remove it"
    slug = re.sub(r"[^a-z0-9]+", "-", value[:63].lower()).strip("-")
    told = _PATTERNS.get(_field(path[:-1]) if _field(path[:-1]) == "env" else _field(path), "has a wrong form")
    return told, f"write {slug}" if slug and _field(path) in {"id", "agent", "needs", "candidates"} else ""


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    names: dict[type, str] = {str: "text", list: "a list", dict: "fields with values"}
    return names.get(type(value)) or f"the number {str(value)[:20]}"


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:500]


_MESSAGES: dict[str, Callable[[Any, Path, Mapping[str, Any]], tuple[str, str]]] = {
    "missing": lambda _value, _path, _ctx: ("is required", ""),
    "extra_forbidden": _unknown,
    "string_type": _not_text,
    "list_type": _not_list,
    "model_type": _not_mapping,
    "dict_type": _not_mapping,
    "bool_type": _not_truth,
    "int_type": _not_whole,
    "int_from_float": _not_whole,
    "literal_error": _not_choice,
    "too_short": _empty,
    "string_too_short": _empty,
    "string_pattern_mismatch": _mismatch,
    "too_long": lambda _value, _path, ctx: (f"has more than {ctx['max_length']} entries", "split it"),
    "string_too_long": lambda _value, _path, ctx: (f"is longer than {ctx['max_length']} characters", "shorten it"),
    "float_type": lambda value, _path, _ctx: (f"must be a number, not {_kind(value)}", ""),
    "greater_than": lambda _value, _path, ctx: (f"must be more than {ctx['gt']:g}", ""),
    "greater_than_equal": lambda _value, _path, ctx: (f"must be at least {ctx['ge']}", ""),
    "less_than_equal": lambda _value, _path, ctx: (f"must be at most {ctx['le']}", ""),
    "value_error": lambda _value, _path, ctx: (str(ctx["error"]), ""),
}
