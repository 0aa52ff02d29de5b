"""Nothing is lost: snapshots and refs for everything that an agent left behind."""

from __future__ import annotations

import itertools

from harness.engine import failpoints, messages, workspaces
from harness.engine.context import Context
from harness.errors import EnvironmentProblem, SnapshotFailed
from harness.model import events as ev
from harness.model import limits
from harness.model.changes import Snapshot, Workspace
from harness.model.ids import CommitId, RefName, TaskId, keep_ref


async def snapshot(
    ctx: Context,
    task: TaskId,
    attempt: int,
    workspace: Workspace,
    *,
    candidate: int | None = None,
    publish: bool = True,
) -> Snapshot:
    """The workspace's files as a commit, logged, with the agent's own commits kept; `publish` moves the branch there.

    Raises SnapshotFailed, logged too, when its files could only be set aside.
    """
    failpoints.hit("before:snapshot")
    message = messages.snapshot(ctx.run_id, ctx.step(task))
    try:
        taken = await ctx.offload(ctx.parts.vcs.snapshot, workspace, message, ctx.options.commit_time)
    except SnapshotFailed as failed:
        ctx.note(task, ev.WorkspaceKept, path=failed.details["kept"], why=failed.message)
        raise
    failpoints.hit("after:snapshot")
    note(ctx, task, attempt, taken)
    for number, commit in enumerate(taken.agent_commits):
        await _kept_at(ctx, task, f"agent-{_label(attempt, candidate)}-{number}", commit)
    if publish:
        await point(ctx, workspace.branch or ctx.branch(task), taken.commit)
    return taken


def note(ctx: Context, task: TaskId, attempt: int, taken: Snapshot) -> None:
    """Logs a snapshot: the last one that is logged is what the step stands for."""
    shown = taken.changes[: limits.EVENT_PATHS]
    ctx.note(
        task,
        ev.SnapshotTaken,
        attempt=attempt,
        commit=taken.commit,
        tree=taken.tree,
        changed_paths=[change.path for change in shown],
        kinds=[change.kind for change in shown],
        changed_total=len(taken.changes),
        agent_commits=list(taken.agent_commits),
        warnings=list(taken.warnings),
        refused=taken.refused,
        ignored=list(taken.ignored),
        ignored_total=taken.ignored_total,
    )


async def work(
    ctx: Context, task: TaskId, attempt: int, taken: Snapshot, why: str, *, candidate: int | None = None
) -> RefName | None:
    """A keep ref on the snapshot of work that will not be merged; None when there is nothing to keep."""
    if not taken.changes and not taken.agent_commits:
        return None
    ref = await _kept_at(ctx, task, f"attempt-{_label(attempt, candidate)}", taken.commit)
    ctx.note(task, ev.WorkKept, ref=ref, commit=taken.commit, why=why)
    return ref


async def interrupted(
    ctx: Context, task: TaskId, attempt: int, workspace: Workspace, *, candidate: int | None = None
) -> None:
    """Keeps what stands in a workspace whose work was cut short.

    The branch stays where it is: the next attempt would move it back, and a `git push --all` would be refused.
    """
    if not workspaces.stands(workspace.path):
        return
    try:
        taken = await snapshot(ctx, task, attempt, workspace, candidate=candidate, publish=False)
        await work(ctx, task, attempt, taken, "interrupted", candidate=candidate)
    except SnapshotFailed:
        pass
    except (EnvironmentProblem, OSError) as error:
        if not workspaces.vanished(workspace.path, error):
            raise


async def _kept_at(ctx: Context, task: TaskId, label: str, commit: CommitId) -> RefName:
    """A keep ref on the commit; one that holds other work is left alone, and the label gets a number.

    A recovery and the runs that a retried parent spawns have no attempt number of their own.
    """
    for number in itertools.count(1):
        ref = keep_ref(ctx.run_id, task, label if number == 1 else f"{label}-{number}")
        if await ctx.offload(ctx.parts.vcs.read_ref, ref) in (None, commit):
            break
    await point(ctx, ref, commit)
    return ref


def _label(attempt: int, candidate: int | None) -> str:
    return str(attempt) if candidate is None else f"{attempt}.{candidate}"


async def point(ctx: Context, ref: RefName, commit: CommitId) -> None:
    """Puts a ref of the run on a commit; doing it twice is doing it once."""
    vcs = ctx.parts.vcs
    old = await ctx.offload(vcs.read_ref, ref)
    if old != commit:
        failpoints.hit("before:ref")
        await ctx.offload(vcs.move_ref, ref, commit, old)
        failpoints.hit("after:ref")
