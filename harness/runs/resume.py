"""Carries on with a run that a crash, a signal or a fault interrupted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from harness.config import reading
from harness.engine import ending, record, signals
from harness.engine.journal import Watch
from harness.errors import UsageError
from harness.model import events as ev
from harness.model import limits
from harness.model.ids import RunId
from harness.model.lifecycle import RunStatus
from harness.model.state import RunState
from harness.ports import Lease
from harness.runs import nested, replay, telemetry
from harness.wiring import Project, holder


def resume(
    project: Project,
    run_id: RunId,
    watch: Watch,
    *,
    accept_changed_plan: bool = False,
    budget: Mapping[str, int | float] | None = None,
) -> RunState:
    """Continues from the log; raises Busy while another coordinator lives.

    A run that has ended is returned as it is, unless it was cancelled: its cancelled steps are done by new sub-agents.
    """
    nested.require_top(project.reading, run_id, "resume")
    parts = project.parts()
    state = parts.store.state(run_id)
    replay.check_copy(project, state)
    over = state.ended and state.status is not RunStatus.CANCELLED
    if over and record.is_complete(parts.store, parts.vcs, run_id):
        return state
    changed = _changed_plan(state)
    if changed and not accept_changed_plan:
        raise UsageError(
            f"the plan file {state.plan_path} has changed since the run began (sha256 {changed[:12]}, was "
            f"{state.plan_digest[:12]})",
            hint="the run continues with the plan it began with: say --accept-changed-plan, or start a new run",
        )
    who = holder()
    lease = parts.store.acquire(run_id, who)
    if changed:
        _note_change(project, lease, state, changed)
    if budget:
        project.store.append(lease, [ev.BudgetChanged(budget=dict(budget))])
    with telemetry.observing(project, watch) as observed:
        return signals.run(ending.carry_on(parts, lease, who, observed))


def _changed_plan(state: RunState) -> str | None:
    """The new digest of a plan file that is there and differs; the log has the plan, so a missing file is no harm."""
    if state.plan_path in ("", reading.STDIN):
        return None
    try:
        digest = hashlib.sha256(reading.content(state.plan_path, limits.PLAN_BYTES)).hexdigest()
    except reading.Unreadable:
        return None
    return None if digest == state.plan_digest else digest


def _note_change(project: Project, lease: Lease, state: RunState, digest: str) -> None:
    project.store.append(lease, [ev.PlanChangeAccepted(old_digest=state.plan_digest, new_digest=digest)])
