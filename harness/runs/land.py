"""Landing: the one act that moves a branch of the user's, only forwards, and only when asked."""

from __future__ import annotations

from harness.errors import LandingRefused, UsageError
from harness.model import events as ev
from harness.model.ids import CommitId, RefName, RunId
from harness.model.lifecycle import RunStatus
from harness.model.state import RunState
from harness.wiring import Project, holder


def land(project: Project, run_id: RunId, into: str | None = None, *, partial: bool = False) -> RunState:
    """Fast-forwards the target to the integrated result, or raises LandingRefused with the reason."""
    if run_id in project.recorded():
        head = project.log(run_id).state(run_id).head
        raise LandingRefused(
            f"run {run_id} is here only as its record, and a record notes no landing",
            hint=f"fetch its integration branch, then git merge --ff-only {head}",
        )
    state = project.store.state(run_id)
    target = RefName.branch(into) if into else state.target and RefName(state.target)
    if not target:
        raise UsageError(f"run {run_id} has no branch to land on: HEAD was detached", hint="say --into BRANCH")
    if state.status is not RunStatus.SUCCEEDED and not partial:
        raise LandingRefused(
            f"run {run_id} is {state.status}, not succeeded",
            hint="--partial lands the steps that were merged; they are on " + RefName(state.integration_ref).short,
        )
    lease = project.store.acquire(run_id, holder())
    try:
        old = project.repository.fast_forward(RefName(target), CommitId(state.head))
        return project.store.append(lease, [ev.RunLanded(target=target, old=old, new=state.head)])
    finally:
        project.store.release(lease)
