"""Nothing is lost: snapshots and refs for everything that an agent left behind."""

from __future__ import annotations

from harness.engine import failpoints, messages
from harness.engine.context import Context
from harness.model import events as ev
from harness.model import limits
from harness.model.changes import Snapshot, Workspace
from harness.model.ids import CommitId, RefName, TaskId, keep_ref


async def snapshot(ctx: Context, task: TaskId, attempt: int, workspace: Workspace) -> Snapshot:
    """The workspace's files as a commit, logged, with the work branch on it and the agent's own commits kept."""
    failpoints.hit("before:snapshot")
    message = messages.snapshot(ctx.run_id, ctx.step(task))
    taken = await ctx.offload(ctx.parts.vcs.snapshot, workspace, message, ctx.options.commit_time)
    failpoints.hit("after:snapshot")
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
    )
    for number, commit in enumerate(taken.agent_commits):
        await point(ctx, keep_ref(ctx.run_id, task, f"agent-{attempt}-{number}"), commit)
    await ctx.offload(ctx.parts.vcs.sweep_refs, workspace)
    await point(ctx, ctx.branch(task), taken.commit)
    return taken


async def work(ctx: Context, task: TaskId, attempt: int, taken: Snapshot, why: str) -> RefName | None:
    """A keep ref on the snapshot of work that will not be merged; None when there is nothing to keep."""
    if not taken.changes and not taken.agent_commits:
        return None
    ref = keep_ref(ctx.run_id, task, f"attempt-{attempt}")
    await point(ctx, ref, taken.commit)
    ctx.note(task, ev.WorkKept, ref=ref, commit=taken.commit, why=why)
    return ref


async def point(ctx: Context, ref: RefName, commit: CommitId) -> None:
    """Puts a ref of the run on a commit; doing it twice is doing it once."""
    vcs = ctx.parts.vcs
    old = await ctx.offload(vcs.read_ref, ref)
    if old != commit:
        failpoints.hit("before:ref")
        await ctx.offload(vcs.move_ref, ref, commit, old)
        failpoints.hit("after:ref")
