"""Merging by objects: the same function gives a step's start point and the run's integration.

A merge is a function of the two sides and of the step, never of time, so doing it again after a crash gives the
same commit.
"""

from __future__ import annotations

from harness.engine import messages
from harness.engine.context import Context
from harness.errors import GitFailed
from harness.model.changes import Merge
from harness.model.ids import CommitId, TaskId
from harness.model.verdict import Failure, Reason


async def start_point(ctx: Context, task: TaskId, needs: tuple[int, ...]) -> CommitId | Failure:
    """Base plus the step's needs, direct and indirect, merged in plan order.

    A retried step stands on what was integrated before the retry, and needs only what is retried with it. A step whose
    need was done again after the step was created stands where that need does, and needs what is not integrated there.
    """
    step = ctx.step(task)
    head, missing = CommitId(step.origin or ctx.base), [need for need in needs if _origin(ctx, need) == step.origin]
    redone = [need for need in needs if _origin(ctx, need) and ctx.step(ctx.task(need)).since > step.since]
    if redone:
        last = max(redone, key=lambda need: ctx.step(ctx.task(need)).since)
        head, missing = CommitId(_origin(ctx, last) or ""), [need for need in needs if need >= last]
    for need in missing:
        merged = await onto(ctx, head, ctx.task(need))
        if isinstance(merged, Failure):
            return Failure(
                Reason.DEPENDENCY_FAILED,
                f"what step {task} needs cannot be combined: step {need} does not merge: {merged.message}",
                merged.paths,
            )
        head = merged
    return head


def _origin(ctx: Context, need: int) -> str | None:
    return ctx.step(ctx.task(need)).origin


async def onto(ctx: Context, head: CommitId, task: TaskId) -> CommitId | Failure:
    """The merge commit of a parked step's snapshot onto `head`, with the step's start point as three-way base."""
    step = ctx.step(task)
    theirs = CommitId(step.commit or "")
    if (head, theirs) in ctx.merges:
        return ctx.merges[head, theirs]
    try:
        merge: Merge = await ctx.offload(ctx.parts.vcs.merge, head, theirs, CommitId(step.start_point or ""))
    except GitFailed as failed:
        if not failed.details.get("content"):
            raise
        reason = Reason.LIMIT_EXCEEDED if failed.details.get("overtime") else Reason.CONTENT_REFUSED
        return Failure(reason, f"git cannot merge step {task}: {failed.message}", hint=failed.hint)
    if merge.tree is None:
        paths = tuple(sorted({conflict.path for conflict in merge.conflicts}))
        said = "; ".join(conflict.message for conflict in merge.conflicts[:3])
        return Failure(Reason.MERGE_CONFLICT, said or f"conflict in {', '.join(paths)}", paths)
    tree = merge.tree
    if ctx.options.reports == "commit":
        report = (ctx.run_dir / f"step-{task}-result.md").read_bytes()
        tree = await ctx.offload(ctx.parts.vcs.with_file, tree, ctx.contract(task).report_path, report)
    commit = await ctx.offload(
        ctx.parts.vcs.commit, tree, [head, theirs], messages.merge(ctx.run_id, step), ctx.options.commit_time
    )
    ctx.merges[head, theirs] = commit
    return commit
