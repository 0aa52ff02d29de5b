"""Landing and its undoing: the only acts that move a branch of the user's, and only when asked.

Each is announced in the log, then done, then told. What a death leaves in between is settled by the next call.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from harness.engine import failpoints
from harness.errors import Busy, LandingRefused, NotFound, OrchestrixError, UsageError
from harness.model import events as ev
from harness.model.ids import CommitId, RefName, RunId, undone_ref
from harness.model.lifecycle import RunStatus
from harness.model.state import RunState
from harness.ports import Lease
from harness.wiring import Project, holder


def land(project: Project, run_id: RunId, into: str | None = None, *, partial: bool = False) -> RunState:
    """Fast-forwards the target to the integrated result, or raises LandingRefused with the reason.

    A result that changes no file of the branch moves nothing: nobody wants its empty commits.
    """
    from harness.runs import nested  # noqa: PLC0415 - a run without --land has no use for it

    _require_log(project, run_id)
    nested.require_top(project.reading, run_id, "land")
    settle(project)
    lease = project.store.acquire(run_id, holder())
    try:
        state = _told(project, lease)
        target = _target(state, into, partial=partial)
        new = CommitId(state.head)
        old = project.repository.check_landing(target, new)
        if old is None and into is None and state.target_at is not None:
            raise LandingRefused(
                f"{target.short} was deleted since the run began",
                hint=f"to make it again, say `orchestrix land {run_id} --into {target.short}`",
                branch=target,
            )
        if old == new:
            return _landed_already(project, lease, state, target)
        if old is not None and project.repository.tree_of(old) == project.repository.tree_of(new):
            return state
        _append(project, lease, ev.LandingStarted(target=target, old=old, new=new))
        try:
            project.repository.fast_forward(
                target, new, run_id, lambda path, data: _is_report_copy(project, path, data)
            )
        except OrchestrixError as error:
            _append(project, lease, ev.LandingStopped(target=target, reason=error.message))
            raise
        failpoints.hit("after:landing")
        return _append(project, lease, ev.RunLanded(target=target, old=old, new=new))
    finally:
        project.store.release(lease)


def last(state: RunState) -> Mapping[str, Any] | None:
    """The landing of the run's result that stands and was made last; None when there was nothing to land."""
    return state.landings[-1] if state.landings and state.landings[-1]["new"] == state.head else None


def _landed_already(project: Project, lease: Lease, state: RunState, target: RefName) -> RunState:
    """Twice is once; a branch that the user moved there counts as landed, and was not moved by us."""
    found = [made for made in state.landings if made["target"] == target and made["new"] == state.head]
    if found and found[-1] == state.landings[-1]:
        return state
    old = found[-1]["old"] if found else state.head
    return _append(project, lease, ev.RunLanded(target=target, old=old, new=state.head))


def undo(project: Project, run_id: RunId | None = None) -> tuple[RunState, ev.LandingUndone]:
    """Takes the last landing back, of this run or of all; raises LandingRefused when something came after it."""
    settle(project)
    run_id = run_id or _last_landed(project)
    lease = project.store.acquire(run_id, holder())
    try:
        state = _told(project, lease)
        if not state.landings:
            raise NotFound(f"run {run_id} has no landing to undo", hint="see `orchestrix events`")
        made = state.landings[-1]
        target, now, back = RefName(made["target"]), CommitId(made["new"]), made["old"]
        if now == back:
            raise LandingRefused(
                f"the landing of run {run_id} moved nothing: {target.short} was at {now[:12]} already",
                hint="what brought it there takes it back",
            )
        _append(project, lease, ev.UndoStarted(target=target, old=now, new=back))
        try:
            _keep(project, run_id, target, now)
            project.repository.take_back(target, now, CommitId(back) if back else None, run_id)
        except OrchestrixError as error:
            _append(project, lease, ev.LandingStopped(target=target, reason=error.message))
            raise
        failpoints.hit("after:undo")
        undone = ev.LandingUndone(target=target, old=now, new=back)
        return _append(project, lease, undone), undone
    finally:
        project.store.release(lease)


def _keep(project: Project, run_id: RunId, target: RefName, landed: CommitId) -> None:
    """The branch may be the last to hold these commits: the user may have deleted the integration branch.

    A branch that is elsewhere by now is not moved, and the commits may be gone.
    """
    vcs = project.repository
    if vcs.read_ref(target) != landed:
        return
    ref = undone_ref(run_id, landed)
    vcs.move_ref(ref, landed, vcs.read_ref(ref))
    failpoints.hit("after:undo_kept")


def settle(project: Project) -> None:
    """Finishes or takes back what a dead `land` or `undo` left in a checkout, and tells it in its run's log."""
    for left in project.repository.settle_landings():
        if left.run and RunId(left.run) in project.store.run_ids():
            try:
                lease = project.store.acquire(RunId(left.run), holder())
            except Busy:
                continue  # its own coordinator tells it
            try:
                _told(project, lease)
            finally:
                project.store.release(lease)


def _told(project: Project, lease: Lease) -> RunState:
    """The state, after the outcome of what was announced last is told, if a death left that open."""
    state = project.store.state(lease.run_id)
    if state.landing is None:
        return state
    target, old, new = (state.landing[name] for name in ("target", "old", "new"))
    if project.repository.read_ref(RefName(target)) != new:
        return _append(project, lease, ev.LandingStopped(target=target, reason="it was interrupted"))
    kind = ev.LandingUndone if state.landing["undo"] else ev.RunLanded
    return _append(project, lease, kind(target=target, old=old, new=new))


def _require_log(project: Project, run_id: RunId) -> None:
    """Raises LandingRefused for a run that is here only as a record: no landing could be noted."""
    if run_id in project.recorded():
        head = project.log(run_id).state(run_id).head
        raise LandingRefused(
            f"run {run_id} is here only as its record, and a record notes no landing",
            hint=f"fetch its integration branch, then git merge --ff-only {head}",
        )


def _target(state: RunState, into: str | None, *, partial: bool) -> RefName:
    """The branch that the run goes to; raises where there is nothing to land, or nowhere. Ask it under the lease."""
    target = RefName.branch(into) if into else state.target and RefName(state.target)
    if not target:
        raise UsageError(f"run {state.run_id} has no branch to land on: HEAD was detached", hint="say --into BRANCH")
    if state.status is not RunStatus.SUCCEEDED and not partial:
        raise LandingRefused(
            f"run {state.run_id} is {state.status}, not succeeded",
            hint="--partial lands the steps that were merged; they are on " + RefName(state.integration_ref).short,
        )
    return RefName(target)


def _last_landed(project: Project) -> RunId:
    states = [project.reading.state(run) for run in project.reading.run_ids()]
    landed = [state for state in states if state.landings]
    if not landed:
        raise NotFound("nothing has been landed here", hint="`orchestrix land` lands a run")
    return RunId(max(landed, key=lambda state: str(state.landings[-1]["at"])).run_id)


def _append(project: Project, lease: Lease, fact: ev.Fact) -> RunState:
    failpoints.hit(f"before:{fact.type}")
    state = project.store.append(lease, [fact])
    failpoints.hit(f"after:{fact.type}")
    return state


def _is_report_copy(project: Project, path: str, content: bytes) -> bool:
    """Whether this is a report that the harness put into the checkout, unchanged: its archive has it, too."""
    if not fnmatchcase(path, ".orchestrix/step-*-result.md"):
        return False
    name = PurePosixPath(path).name
    return any(archived.read_bytes() == content for archived in project.runs_dir.glob(f"*/{name}"))
