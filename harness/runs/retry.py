"""Re-runs a failed step, and what failed because of it, with new sub-agents under the same contracts."""

from __future__ import annotations

from harness.engine import create, launch, signals
from harness.engine.journal import Watch
from harness.errors import UsageError
from harness.model import events as ev
from harness.model import rounds
from harness.model.ids import RunId, TaskId
from harness.model.lifecycle import RunStatus
from harness.model.state import RunState
from harness.model.verdict import Reason
from harness.runs import nested, replay, telemetry
from harness.wiring import Project, holder


def retry(project: Project, run_id: RunId, task: TaskId, watch: Watch) -> RunState:
    """The step and what failed because of it run again, on top of all that is merged; what was merged stays merged."""
    nested.require_top(project.reading, run_id, "retry")
    parts = project.parts()
    who = holder()
    lease = parts.store.acquire(run_id, who)  # first: only then nobody else changes whether the step can be retried
    try:
        state = parts.store.state(run_id)
        replay.check_copy(project, state)
        parts.store.append(lease, _successors(state, task))
    except BaseException:
        parts.store.release(lease)
        raise
    with telemetry.observing(project, watch) as observed:
        return signals.run(launch.carry_on(parts, lease, who, observed))


def _successors(state: RunState, task: TaskId) -> list[ev.SubagentCreated]:
    if state.status is RunStatus.RUNNING or state.steps[task].final_status != "failed":
        raise UsageError(
            f"step {task} of run {state.run_id} is not closed as failed",
            hint="`orchestrix resume` carries on with a run",
        )
    return [create.successor(state, idx) for idx in _to_do_again(state, state.steps[task].step_idx)]


def _to_do_again(state: RunState, first: int) -> list[int]:
    """The step, its failed dependants and, where the plan stops at a failure, what was stopped after it."""
    order = rounds.order(state.rounds)
    again = [first]
    for step in state.ordered():
        if step.final_status == "failed" and step.step_idx > first:
            stands_on = set(order.closure(step.step_idx)) & set(again)
            if stands_on or step.close_reason == Reason.STOPPED:
                again.append(step.step_idx)
    return again
