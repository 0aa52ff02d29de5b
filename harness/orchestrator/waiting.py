"""Why a run stops although it has open tasks: a person must decide, or allow more. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from harness.errors import IllegalTransition
from harness.model import events as ev
from harness.model.ids import TaskId
from harness.model.state import RunState
from harness.orchestrator import router


def why(state: RunState, now: datetime, nested: Mapping[TaskId, RunState]) -> ev.RunWaiting:
    """The fact that says so, for nested runs too; raises IllegalTransition where nothing explains the standstill."""
    asked = [step.task_id for step in state.ordered() if step.escalated]
    asked += [task for child in nested.values() for task in child.waiting_tasks]
    if asked:
        return ev.RunWaiting(cause="approval", message=f"step {', '.join(asked)} needs a decision", tasks=asked)
    over = router.over_budget(state, now) or next((child.waiting for child in nested.values()), None)
    if over is not None:
        open_ = [step.task_id for step in state.ordered() if not step.done]
        return ev.RunWaiting(cause="budget", message=over, tasks=open_)
    raise IllegalTransition(f"run {state.run_id} has open steps and nothing is next")
