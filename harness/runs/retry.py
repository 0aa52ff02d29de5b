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
from harness.wiring import Project, holder


def retry(project: Project, run_id: RunId, task: TaskId, watch: Watch) -> RunState:
    """The step and its failed dependants run again on what they need; what was merged stays merged."""
    parts = project.parts()
    state = parts.store.state(run_id)
    if state.status is RunStatus.RUNNING or state.steps[task].final_status != "failed":
        raise UsageError(
            f"step {task} of run {run_id} is not closed as failed", hint="`orchestrix resume` carries on with a run"
        )
    again = [task, *_failed_dependants(state, task)]
    who = holder()
    lease = parts.store.acquire(run_id, who)
    plan = Plan.model_validate(dict(state.plan))
    sandbox = str(state.options.get("sandbox", "auto"))
    parts.store.append(
        lease, [create.subagent(plan, run_id, int(item), sandbox, _generation(state, item)) for item in again]
    )
    return signals.run(launch.carry_on(parts, lease, who, watch))


def _failed_dependants(state: RunState, task: TaskId) -> list[TaskId]:
    plan = schedule(Plan.model_validate(dict(state.plan)))
    return [
        TaskId(step.task_id)
        for step in state.ordered()
        if step.final_status == "failed" and int(task) in plan.closure(step.step_idx)
    ]


def _generation(state: RunState, task: TaskId) -> int:
    return 2 + sum(step.task_id == task for step in state.superseded)
