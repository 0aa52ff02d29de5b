"""What a run may use, what it has used, and which of its budgets has ended. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from harness.model import duration
from harness.model import events as ev
from harness.model.late import dataclass
from harness.model.value import evolved


@dataclass(frozen=True, slots=True)
class Spent:
    """Sums over the log; money counts where a price is known, time while a coordinator drives the run."""

    tokens: int = 0
    cost_usd: float = 0.0
    attempts: int = 0
    wall_ms: int = 0

    def __add__(self, other: Spent) -> Spent:
        if other is _NOTHING:
            return self
        return evolved(
            self,
            tokens=self.tokens + other.tokens,
            cost_usd=self.cost_usd + other.cost_usd,
            attempts=self.attempts + other.attempts,
            wall_ms=self.wall_ms + other.wall_ms,
        )


_NOTHING = Spent()  # what nearly every fact uses


def used_by(fact: ev.Fact | None) -> Spent:
    """What one fact says was used."""
    if isinstance(fact, ev.SubagentAttempt):
        return Spent(attempts=1)
    if isinstance(fact, ev.AttemptFinished) and fact.usage:
        return _usage(fact.usage)
    if isinstance(fact, ev.ModelAnswered | ev.ModelGaveUp):
        return _usage(vars(fact))
    if isinstance(fact, ev.SubagentReturned):
        nested = fact.usage
        return Spent(nested.get("tokens", 0), nested.get("cost_usd", 0.0), nested.get("attempts", 0))
    return _NOTHING


def _usage(told: Mapping[str, Any]) -> Spent:
    """An agent's own words: what is no number counts as nothing."""
    tokens = sum(_number(told.get(name)) for name in ("input_tokens", "output_tokens"))
    return Spent(tokens=int(tokens), cost_usd=float(_number(told.get("cost_usd"))))


def _number(value: Any) -> int | float:
    return max(value, 0) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def driven(fact: ev.Fact | None, before: str, ts: str) -> Spent:
    """The time between two lines of the log; before a coordinator starts nobody drives the run."""
    if before in ("", ts) or isinstance(fact, ev.RunStarted):
        return _NOTHING
    return evolved(_NOTHING, wall_ms=max(0, _milliseconds(before, datetime.fromisoformat(ts))))


def ended(budget: Mapping[str, Any], spent: Spent, since: str, now: datetime) -> str | None:
    """Which budget is used up, as a sentence; None while there is some left of each; `since` is the last line's time."""
    for name, limit in budget.items():
        used = getattr(spent, name) + (max(0, _milliseconds(since, now)) if name == "wall_ms" else 0)
        if used >= limit:
            shown = _SHOWN[name]
            return f"budget {NAMES[name]}: {shown(used)} of {shown(limit)} used"
    return None


def _milliseconds(since: str, until: datetime) -> int:
    return int((until - datetime.fromisoformat(since)).total_seconds() * 1000)


NAMES = {"tokens": "tokens", "cost_usd": "cost_usd", "attempts": "attempts", "wall_ms": "wall_time"}
_SHOWN: dict[str, Callable[[Any], str]] = {
    "tokens": str,
    "cost_usd": lambda value: f"{value:.2f} USD",
    "attempts": str,
    "wall_ms": lambda value: duration.text(int(value)),
}
