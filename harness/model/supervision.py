"""The rules that bound hierarchical execution: steps, depth, re-entry, allowlists, and what a stop is. Pure.

The decisions of a run and the turns of the supervisor library are judged by the same functions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple, get_args

from harness.model.late import dataclass

DecisionKind = Literal["NODE", "SUBGRAPH", "STOP_LOCAL", "STOP_GLOBAL", "FALLBACK"]
TerminationReason = Literal["max_depth_exceeded", "max_steps_exceeded", "cycle_detected", "allowlist_violation"]
TERMINATIONS: Mapping[str, TerminationReason] = {reason: reason for reason in get_args(TerminationReason)}


@dataclass(frozen=True, slots=True)
class Budgets:
    """How many decisions, how many levels, and how often the same subgraph; 0 is a limit, not an absence."""

    max_depth: int = 2
    max_steps: int = 40
    max_reentry: int = 2


BOUNDS = tuple(Budgets.__dataclass_fields__)


class Verdict(NamedTuple):
    """One decided thing: a trace item without its place and time; a `termination` makes it a safe stop."""

    kind: DecisionKind
    supervisor: str | None
    target: str | None
    reason: str
    termination: TerminationReason | None = None


def over_steps(step: int, max_steps: int, supervisor: str | None, target: str | None) -> Verdict | None:
    """The stop that this step is, if it is one too many."""
    if step <= max_steps:
        return None
    why = f"step {step} is over max_steps {max_steps}"
    return Verdict("STOP_GLOBAL", supervisor, target, why, "max_steps_exceeded")


def over_depth(depth: int, max_depth: int, supervisor: str | None, subgraph: str) -> Verdict | None:
    """The stop that calling this subgraph is, if `depth`, its level, is too deep."""
    if depth <= max_depth:
        return None
    why = f"calling {subgraph!r} would be depth {depth}, over max_depth {max_depth}"
    return Verdict("STOP_GLOBAL", supervisor, subgraph, why, "max_depth_exceeded")


def over_reentry(visits: int, max_reentry: int, supervisor: str | None, subgraph: str) -> Verdict | None:
    """The stop that this visit to a subgraph is, if it is one too many."""
    if visits <= max_reentry:
        return None
    why = f"calling {subgraph!r} would be visit {visits}, over max_reentry {max_reentry}"
    return Verdict("STOP_GLOBAL", supervisor, subgraph, why, "cycle_detected")


def off_allowlist(
    allowlist: Collection[str] | None, supervisor: str | None, target: str, reason: str = ""
) -> Verdict | None:
    """The stop that choosing this target is, if the supervisor may not choose it; None allows everything."""
    if allowlist is None or target in allowlist:
        return None
    why = f"{target!r} is not on the allowlist of {supervisor!r}" + (f" ({reason})" if reason else "")
    return Verdict("STOP_GLOBAL", supervisor, target, why, "allowlist_violation")


def end_of_level(depth: int) -> DecisionKind:
    """The end of a level returns to its caller; the end of the top ends everything."""
    return "STOP_LOCAL" if depth > 0 else "STOP_GLOBAL"
