"""Why a run stops although it has open tasks: a person must decide, or allow more. Pure."""

from __future__ import annotations

from datetime import datetime

from harness.errors import IllegalTransition
from harness.model import events as ev
from harness.model.state import RunState
from harness.orchestrator import router


def why(state: RunState, now: datetime) -> ev.RunWaiting:
    """The fact that says so; raises IllegalTransition where nothing explains the standstill."""
    escalated = [step.task_id for step in state.ordered() if step.escalated]
    if escalated:
        said = f"step {', '.join(escalated)} needs a decision"
        return ev.RunWaiting(cause="approval", message=said, tasks=escalated)
    over = router.over_budget(state, now)
    if over is not None:
        open_ = [step.task_id for step in state.ordered() if not step.done]
        return ev.RunWaiting(cause="budget", message=over, tasks=open_)
    raise IllegalTransition(f"run {state.run_id} has open steps and nothing is next")
