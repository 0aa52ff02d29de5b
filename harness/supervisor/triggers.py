"""Trigger rules: which nodes match a state, best first. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from harness.supervisor.contracts import NodeContract, TriggerCondition
from harness.supervisor.slices import INTERNAL, RESPONSE, State

_SEARCH_ORDER = ("request", RESPONSE, INTERNAL)


class TriggerMatch(NamedTuple):
    """A node whose condition number `condition_index` matched."""

    priority: int
    node_name: str
    condition_index: int


def evaluate(contracts: Iterable[NodeContract], state: State) -> list[TriggerMatch]:
    """The matching nodes by falling priority; equal priorities keep the order of registration."""
    found: list[TriggerMatch] = []
    for contract in contracts:
        best: TriggerMatch | None = None
        for index, condition in enumerate(contract.trigger_conditions):
            if (best is None or condition.priority > best.priority) and holds(condition, state):
                best = TriggerMatch(condition.priority, contract.name, index)
        if best is not None:
            found.append(best)
    found.sort(key=lambda match: -match.priority)
    return found


def holds(condition: TriggerCondition, state: State) -> bool:
    """Whether every `when` is met and no `when_not` is."""
    for key, want in (condition.when or {}).items():
        if not _meets(lookup(state, key), want):
            return False
    return all(not _meets(lookup(state, key), want) for key, want in (condition.when_not or {}).items())


def lookup(state: State, key: str) -> Any:
    """The value at `slice.field`; a bare field is searched in request, response, _internal, then the other slices."""
    head, *path = key.split(".")
    if path:
        return _dig(state.get(head), path)
    for name in (*_SEARCH_ORDER, *sorted(state.keys() - set(_SEARCH_ORDER))):
        slice_ = state.get(name)
        if isinstance(slice_, dict) and head in slice_:
            return slice_[head]
    return None


def _dig(value: Any, path: list[str]) -> Any:
    for part in path:
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def _meets(actual: Any, want: Any) -> bool:
    if want is True or want is False:
        return bool(actual) is want
    return bool(actual == want)
