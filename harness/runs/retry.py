"""Re-runs a failed step, and what failed because of it, with new sub-agents under the same contracts."""

from __future__ import annotations

from harness.engine import create, launch, signals
from harness.engine.journal import Watch
from harness.errors import UsageError
from harness.model.ids import RunId, TaskId
from harness.model.lifecycle import RunStatus
from harness.model.plan import Plan
from harness.model.schedule import schedule
from harness.model.state import RunState
from harness.model.verdict import Reason
from harness.wiring import Project, holder


def retry(project: Project, run_id: RunId, task: TaskId, watch: Watch) -> RunState:
    """The step and what failed because of it run again, on top of all that is merged; what was merged stays merged."""
    parts = project.parts()
    state = parts.store.state(run_id)
    if state.status is RunStatus.RUNNING or state.steps[task].final_status != "failed":
        raise UsageError(
            f"step {task} of run {run_id} is not closed as failed", hint="`orchestrix resume` carries on with a run"
        )
    plan = Plan.model_validate(dict(state.plan))
    again = [task, *_failed_because_of(state, plan, task)]
    who = holder()
    lease = parts.store.acquire(run_id, who)
    sandbox = str(state.options.get("sandbox", "auto"))
    parts.store.append(
        lease,
        [create.subagent(plan, run_id, int(item), sandbox, _generation(state, item), state.head) for item in again],
    )
    return signals.run(launch.carry_on(parts, lease, who, watch))


def _failed_because_of(state: RunState, plan: Plan, task: TaskId) -> list[TaskId]:
    """Failed dependants and, where the plan stops at a failure, what was stopped after it."""
    order = schedule(plan)
    later = [step for step in state.ordered() if step.final_status == "failed" and step.step_idx > int(task)]
    return [
        TaskId(step.task_id)
        for step in later
        if int(task) in order.closure(step.step_idx) or step.close_reason == Reason.STOPPED
    ]


def _generation(state: RunState, task: TaskId) -> int:
    return 2 + sum(step.task_id == task for step in state.superseded)
