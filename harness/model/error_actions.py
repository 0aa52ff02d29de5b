"""The editable map from errors to actions: which names it knows, and what holds where it says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from harness.model.verdict import Failure, Reason


class Action(StrEnum):
    """What becomes of a task whose attempts, or whose integration, failed."""

    RETRY = "retry"
    SPAWN_RECOVERY = "spawn_recovery"
    ESCALATE = "escalate"
    MARK_FAILED = "mark_failed"


# Outcomes that are another task's doing, or a person's: no action of their own can mend them.
_FIXED = {Reason.MERGED, Reason.DEPENDENCY_FAILED, Reason.STOPPED, Reason.CANCELLED}
REASONS = tuple(reason for reason in Reason if reason not in _FIXED)
ALIASES = {"RateLimit": Reason.RATE_LIMITED, "PermissionError": Reason.TOOL_DENIED, "TimeoutError": Reason.TIMEOUT}
_NAMES = {
    name.replace("_", "").lower(): reason
    for name, reason in [*((reason.value, reason) for reason in REASONS), *ALIASES.items()]
}


def parse(value: Any) -> dict[str, str]:
    """The map by close reason; `MergeConflict` and `merge_conflict` are the same name; raises ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError('must be a table, such as {MergeConflict = "retry"}')  # noqa: TRY004 - one error for every wrong value
    found: dict[str, str] = {}
    for name, action in value.items():
        reason = _NAMES.get(str(name).replace("_", "").lower())
        if reason is None:
            raise ValueError(f"{name!r:.80} is no error that can be acted on; known: {', '.join(REASONS)}")
        if action not in set(Action):
            raise ValueError(f"{name}: {action!r:.80} is no action; known: {', '.join(Action)}")
        found[reason.value] = Action(action).value
    return found


def action_for(actions: Mapping[str, str], reason: Reason) -> Action:
    """The action that the map gives, or the conservative one: what may help is tried again, all else has failed."""
    given = actions.get(reason.value)
    if given is not None:
        return Action(given)
    return Action.RETRY if Failure(reason, "").retryable else Action.MARK_FAILED
