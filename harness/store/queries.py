"""SQL is written in `sql/*.sql`; each query there has a name, and so has each of its values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

_MARK = "-- name: "
_VALUE = re.compile(r":(\w+)")


class Placed(NamedTuple):
    """A query that takes its values by their place: the database looks up each one that comes by name."""

    text: str
    values: Callable[[Mapping[str, Any]], tuple[Any, ...]]


@cache
def load() -> dict[str, str]:
    """Every named query of every file; a name stands for one query only."""
    found: dict[str, str] = {}
    for file in sorted((Path(__file__).parent / "sql").glob("*.sql")):
        for block in file.read_text(encoding="utf-8").split(_MARK)[1:]:
            name, _, text = block.partition("\n")
            if name in found:
                raise ValueError(f"{file.name}: a second query is called {name}")
            found[name] = text.strip()
    return found


@cache
def placed() -> dict[str, Placed]:
    """The same, to be run."""
    return {name: Placed(_VALUE.sub("?", text), _picked(_VALUE.findall(text))) for name, text in load().items()}


def _picked(names: list[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple(values[name] for name in names)
