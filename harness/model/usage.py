"""What agents say that their work cost: token counts and money add up, names of models and sessions do not.

The names that mean something to the harness: `input_tokens`, `output_tokens`, `cost_usd`, `model`, `session_id`, and
`replayed` for work that was paid for in another run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

COST = "cost_usd"
_DIGITS = 9  # sums of cents stay what they look like


def total(usages: Iterable[Mapping[str, Any]]) -> dict[str, int | float]:
    """Every number, added up by name; what was replayed costs nothing."""
    found: dict[str, int | float] = {}
    for usage in usages:
        for name, value in usage.items() if not usage.get("replayed") else ():
            if isinstance(value, int | float) and not isinstance(value, bool):
                both = found.get(name, 0) + value
                found[name] = round(both, _DIGITS) if isinstance(both, float) else both
    return found


def of(fact: Any) -> dict[str, Any]:
    """What a model used, from the fact that tells of it: `model.answered`, `model.failed`, or one turn, `model.spoke`."""
    counted = fact.calls if isinstance(fact.calls, int) else 1  # a turn's `calls` are those of tools
    return {"calls": counted, **{name: getattr(fact, name) for name in ("input_tokens", "output_tokens", COST)}}


def together(usages: Iterable[Mapping[str, Any]], speaker: Mapping[str, Any]) -> dict[str, Any]:
    """The sum of all, with the model and session of one of them."""
    return {**speaker, **total(usages)}


def spent(usages: Iterable[Mapping[str, Any]]) -> float:
    """The money that was told of; 0 where nobody told."""
    return float(total(usages).get(COST, 0))


def sentence(usage: Mapping[str, Any]) -> str:
    """For people, in one line; empty when nothing was told."""
    parts = [f"${usage[COST]:.4f}"] if isinstance(usage.get(COST), int | float) else []
    counts = [name for name in ("input_tokens", "output_tokens") if isinstance(usage.get(name), int)]
    parts += [f"{usage[name]:,} {name.replace('_', ' ')}" for name in counts]
    return ", ".join(parts) + (" (replayed)" if parts and usage.get("replayed") else "")
