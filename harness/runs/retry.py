"""Re-runs a failed step, and what failed because of it, with new sub-agents under the same contracts."""

from __future__ import annotations

from harness.engine import create, launch, signals
from harness.engine.journal import Watch
from harness.errors import UsageError
from harness.model import rounds
from harness.model.ids import RunId, TaskId
from harness.model.lifecycle import RunStatus
from harness.model.nesting import Nest
from harness.model.state import RunState
from harness.model.verdict import Reason
from harness.runs import replay, telemetry
from harness.wiring import Project, holder


def retry(project: Project, run_id: RunId, task: TaskId, watch: Watch) -> RunState:
    """The step and what failed because of it run again, on top of all that is merged; what was merged stays merged."""
    parts = project.parts()
    state = parts.store.state(run_id)
    replay.check_copy(project, state)
    if state.status is RunStatus.RUNNING or state.steps[task].final_status != "failed":
        raise UsageError(
            f"step {task} of run {run_id} is not closed as failed", hint="`orchestrix resume` carries on with a run"
        )
    plan = rounds.plan(state.goal, state.rounds)
    again = _to_do_again(state, state.steps[task].step_idx)
    who = holder()
    lease = parts.store.acquire(run_id, who)
    sandbox = str(state.options.get("sandbox", "auto"))
    parts.store.append(
        lease,
        [
            create.subagent(
                plan,
                run_id,
                idx,
                sandbox,
                generation=_generation(state, idx),
                origin=state.head,
                nest=Nest.of(state),
                personas=state.options.get("personas"),
            )
            for idx in again
        ],
    )
    with telemetry.observing(project, watch) as observed:
        return signals.run(launch.carry_on(parts, lease, who, observed))


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


def _generation(state: RunState, idx: int) -> int:
    return 2 + sum(step.step_idx == idx for step in state.superseded)
