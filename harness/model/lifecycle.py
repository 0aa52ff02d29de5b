"""The state machine of a sub-agent and of a run (seed 003, section 3)."""

from __future__ import annotations

from enum import StrEnum

from harness.errors import IllegalTransition


class State(StrEnum):
    CREATED = "created"
    RUNNING = "running"
    WAITING_FOR_MERGE = "waiting_for_merge"
    COMPLETED = "completed"
    FAILED = "failed"
    CLOSED = "closed"


class RunStatus(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


TRANSITIONS: frozenset[tuple[State, State]] = frozenset(
    {
        (State.CREATED, State.RUNNING),
        (State.CREATED, State.FAILED),
        (State.RUNNING, State.WAITING_FOR_MERGE),
        (State.RUNNING, State.FAILED),
        (State.WAITING_FOR_MERGE, State.COMPLETED),
        (State.WAITING_FOR_MERGE, State.FAILED),
        (State.COMPLETED, State.CLOSED),
        (State.FAILED, State.CLOSED),
    }
)


def check(sub_agent: str, old: State, new: State) -> State:
    """The new state; raises IllegalTransition for any pair that the machine does not know."""
    if (old, new) not in TRANSITIONS:
        raise IllegalTransition(f"sub-agent {sub_agent} cannot go from {old} to {new}", sub_agent_id=sub_agent)
    return new
