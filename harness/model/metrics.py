"""What is measured of runs: a pure function of their states, so that any log can be asked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from harness.model.late import dataclass
from harness.model.lifecycle import State
from harness.model.state import RunState, StepState

_BEGUN = (State.RUNNING, State.WAITING_FOR_MERGE, State.COMPLETED, State.FAILED)


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counts of tasks now; `average_task_latency` is seconds from start to merge or failure, None before the first."""

    queue_length: int
    active_tasks: int
    failed_tasks: int
    subagents_active: int
    average_task_latency: float | None


def measure(states: Iterable[RunState]) -> Metrics:
    """The metrics of these runs together: a run and its nested ones, or all that a repository has."""
    steps = [step for state in states for step in state.steps.values()]
    latencies = [seconds for step in steps if (seconds := _latency(step)) is not None]
    return Metrics(
        queue_length=sum(step.state is State.CREATED for step in steps),
        active_tasks=sum(step.state in _BEGUN for step in steps),
        failed_tasks=sum(step.failed_attempts > 0 or step.final_status == "failed" for step in steps),
        subagents_active=sum(step.open_attempt for step in steps),
        average_task_latency=sum(latencies) / len(latencies) if latencies else None,
    )


def _latency(step: StepState) -> float | None:
    if step.started_at is None or step.ended_at is None:
        return None
    return (datetime.fromisoformat(step.ended_at) - datetime.fromisoformat(step.started_at)).total_seconds()
