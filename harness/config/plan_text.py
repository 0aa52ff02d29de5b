"""A plan as its author would write it: YAML that people read, and that `plan_file` reads back as the same data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

_WIDTH = 120
_SHORT = 100


class _Writer(yaml.SafeDumper):
    """Indents lists, writes texts of several lines as blocks and short lists of words in one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - PyYAML passes it
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML passes it
        return True


def _text(writer: _Writer, text: str) -> yaml.Node:
    plain = text.replace("\n", "").replace("\t", "").isprintable()  # PyYAML folds line breaks of other alphabets
    open_ended = text.endswith("\n\n") or text == "\n"  # PyYAML ends the whole document after such a block
    style = ("|" if "\n" in text else None) if plain and not open_ended else '"'
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _list(writer: _Writer, items: list[Any]) -> yaml.Node:
    plain = all(isinstance(item, str | int) and "\n" not in str(item) for item in items)
    short = plain and sum(len(str(item)) + 2 for item in items) < _SHORT
    return writer.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=short)


_Writer.add_representer(str, _text)
_Writer.add_representer(list, _list)


def write(plan: Mapping[str, Any]) -> str:
    """The data of a plan file in its own order of keys, the steps last and apart from one another."""
    head = _dumped({key: value for key, value in plan.items() if key != "steps"})
    steps = [_dumped({"steps": [step]}).removeprefix("steps:\n") for step in plan["steps"]]
    return head + "steps:\n" + "\n".join(steps)


def _dumped(data: Mapping[str, Any]) -> str:
    text: str = yaml.dump(data, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return text
