"""Why a run stops although it has open tasks: a person must decide, or allow more. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from harness.errors import IllegalTransition
from harness.model import events as ev
from harness.model.ids import TaskId
from harness.model.state import RunState
from harness.orchestrator import router


def why(state: RunState, now: datetime, nested: Mapping[TaskId, str]) -> ev.RunWaiting:
    """The fact that says so; raises IllegalTransition where nothing explains the standstill."""
    escalated = [step.task_id for step in state.ordered() if step.escalated]
    if escalated:
        said = f"step {', '.join(escalated)} needs a decision"
        return ev.RunWaiting(cause="approval", message=said, tasks=escalated)
    if nested:
        return ev.RunWaiting(cause="nested", message="; ".join(nested.values()), tasks=list(nested))
    over = router.over_budget(state, now)
    if over is not None:
        open_ = [step.task_id for step in state.ordered() if not step.done]
        return ev.RunWaiting(cause="budget", message=over, tasks=open_)
    raise IllegalTransition(f"run {state.run_id} has open steps and nothing is next")
