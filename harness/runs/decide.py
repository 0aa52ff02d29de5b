"""A person's word on an escalated step: one more try, or the end of it; then the run goes on."""

from __future__ import annotations

from harness.engine import launch, signals
from harness.engine.journal import Watch
from harness.errors import UsageError
from harness.model import events as ev
from harness.model.ids import RunId, TaskId
from harness.model.state import RunState
from harness.runs import nested, telemetry
from harness.wiring import Project, holder


def decide(project: Project, run_id: RunId, task: TaskId, watch: Watch, *, approved: bool, note: str = "") -> RunState:
    """Logs the decision and carries on with the run that a person started; raises UsageError when nobody was asked."""
    parts = project.parts()
    who = holder()
    top = nested.root(parts.store, run_id)
    lease = parts.store.acquire(top, who)  # first: what waits for a decision is known when nobody else drives the run
    try:
        _check_asked(parts.store.state(run_id), task)
        below = lease if top == run_id else parts.store.acquire(run_id, who)
        kind = ev.TaskApproved if approved else ev.TaskRejected
        parts.store.append(below, [kind(task=task, note=note)])
        if below is not lease:
            parts.store.release(below)
    except BaseException:
        parts.store.release(lease)
        raise
    with telemetry.observing(project, watch) as observed:
        return signals.run(launch.carry_on(parts, lease, who, observed))


def _check_asked(state: RunState, task: TaskId) -> None:
    if not state.steps[task].escalated:
        raise UsageError(
            f"step {task} of run {state.run_id} waits for nobody's decision", hint="see `orchestrix status`"
        )
