"""Budgets as people give them: in settings, in a plan, on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from harness.errors import UsageError
from harness.model.plan import Budget

Amounts = Mapping[str, int | float]


def parse(words: Sequence[str]) -> dict[str, int | float]:
    """`NAME=VALUE` words by the same rules as a plan's `budget`; raises UsageError."""
    known = tuple(Budget.model_fields)
    given: dict[str, int | float | str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in known or not value:
            raise UsageError(f"{word!r:.80} is no budget", hint=f"write NAME=VALUE with one of {', '.join(known)}")
        given[name] = value if name == "wall_time" else _number(value)
    try:
        return Budget.model_validate(given).as_dict()
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"budget {first['loc'][0]}: {first['msg']}", hint="such as tokens=200000 wall_time=1h"
        ) from error


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def effective(plan: Amounts, settings: Amounts, flags: Amounts) -> dict[str, int | float]:
    """A flag is the person's word; else the smaller of what plan and settings allow."""
    names = {**plan, **settings}
    least = {name: min(source[name] for source in (plan, settings) if name in source) for name in names}
    return {**least, **flags}
