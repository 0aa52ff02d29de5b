"""The parent's part: merge in plan order, gate the exact tree, move the ref, close the child."""

from __future__ import annotations

from harness.engine import combine, delegate, failpoints, gate, keep, race, reports, speculate, tripwire, workspaces
from harness.engine.context import Context
from harness.model import events as ev
from harness.model.changes import Snapshot
from harness.model.ids import CommitId, RefName, TaskId, TreeId
from harness.model.lifecycle import State
from harness.model.verdict import Failure, Reason


async def integrate(ctx: Context, task: TaskId, needs: tuple[int, ...]) -> Failure | None:
    """A parked step becomes completed, or stays parked with the failure that keeps it out; nothing is half-applied."""
    broken = [need for need in needs if ctx.step(ctx.task(need)).final_status != "completed"]
    if broken:
        return Failure(Reason.DEPENDENCY_FAILED, f"step {task} stands on step {broken[0]}, which was not integrated")
    deadly = delegate.exhausted(ctx, task)
    if deadly is not None:
        return deadly
    head = await restored_head(ctx)
    merged = await combine.onto(ctx, head, task)
    if isinstance(merged, Failure):
        return merged
    tree = await ctx.offload(ctx.parts.vcs.tree_of, merged)
    failure = await _gate(ctx, task, merged, tree)
    if failure is None:
        await _advance(ctx, task, head, merged, tree)
    return failure


async def _gate(ctx: Context, task: TaskId, merged: CommitId, tree: TreeId) -> Failure | None:
    async with speculate.beyond(ctx, task, merged, tree):
        ahead = await speculate.found(ctx, task, merged)
        with ctx.flying(task):
            failure = await gate.merged_tree(ctx, task, merged, tree, ahead)
            if ctx.contract(task).checks:
                await tripwire.look(ctx)
    return tripwire.verdict(ctx, task) or failure


async def restored_head(ctx: Context) -> CommitId:
    """Where the log says the integration ref is; if something else moved it, that is kept and the ref is put back."""
    found = await ctx.offload(ctx.parts.vcs.read_ref, ctx.integration_ref)
    expected = CommitId(ctx.journal.state.head)
    if found != expected:
        ctx.journal.append(
            ev.ParentTampered(
                what=[f"{ctx.integration_ref} was moved to {found}; put back"], during=list(ctx.flying_now)
            )
        )
        if found is not None:
            lost = RefName(f"refs/orchestrix/keep/{ctx.run_id}/moved/{found[:12]}")
            await ctx.offload(ctx.parts.vcs.move_ref, lost, found, await ctx.offload(ctx.parts.vcs.read_ref, lost))
        await ctx.offload(ctx.parts.vcs.move_ref, ctx.integration_ref, expected, found)
    return expected


async def _advance(ctx: Context, task: TaskId, head: CommitId, merged: CommitId, tree: TreeId) -> None:
    ctx.note(task, ev.IntegrationStarted, previous=head, merge_commit=merged, tree=tree)
    failpoints.hit("before:integration_ref")
    await ctx.offload(ctx.parts.vcs.move_ref, ctx.integration_ref, merged, head)
    failpoints.hit("after:integration_ref")
    note_merged(ctx, task, head, merged, tree)


def note_merged(ctx: Context, task: TaskId, head: CommitId, merged: CommitId, tree: TreeId) -> None:
    commit = ctx.step(task).commit
    fact = ctx.fact(task, ev.WorktreeMerged, commit=commit, merge_commit=merged, previous=head, tree=tree)
    ctx.journal.append(fact, ctx.task_succeeded(task, merged))


async def refuse(ctx: Context, task: TaskId, failure: Failure) -> None:
    """The child's failure; its snapshot gets a keep ref first."""
    await speculate.abandon(ctx, task)
    taken = await snapshot_of(ctx, task)
    kept = await keep.work(ctx, task, ctx.step(task).attempts, taken, failure.reason)
    conflicts = [{"path": path} for path in failure.paths] if failure.reason is Reason.MERGE_CONFLICT else []
    failed = ctx.fact(
        task,
        ev.IntegrationFailed,
        reason=failure.reason,
        message=failure.message,
        paths=list(failure.paths),
        conflicts=conflicts,
        kept_ref=kept,
    )
    ctx.journal.append(failed, ctx.task_failed(task, failure.reason))


async def snapshot_of(ctx: Context, task: TaskId) -> Snapshot:
    """The work that the step stands for, as its log says."""
    step = ctx.step(task)
    commit = CommitId(step.commit or "")
    changes = await ctx.offload(ctx.parts.vcs.changes, CommitId(step.start_point or ""), commit)
    return Snapshot(commit, TreeId(step.tree or ""), changes)


async def close(ctx: Context, task: TaskId, *then: ev.Fact) -> None:
    """Terminal clean-up, then exactly one `agent.subagent_closed`; what follows from it is logged with it."""
    step = ctx.step(task)
    merged = step.state is State.COMPLETED
    report = reports.finish(ctx, task)
    removed: list[ev.Fact] = []
    if not ctx.options.keep:
        removed = await workspaces.remove_all(ctx, task)
        if ctx.contract(task).work.candidates:
            await race.sweep(ctx, task)
        if merged or step.kept_ref is None:
            await _drop_branch(ctx, task)
    closed = ctx.fact(
        task,
        ev.SubagentClosed,
        final_status="completed" if merged else "failed",
        close_reason=Reason.MERGED if merged else step.close_reason,
    )
    ctx.journal.append(*removed, closed, *then)
    reports.place(ctx, task, report)
    ctx.contracts.pop(step.sub_agent_id, None)


async def _drop_branch(ctx: Context, task: TaskId) -> None:
    """The branch of a step that is merged, or that did nothing, holds nothing that is not elsewhere."""
    step = ctx.step(task)
    at = await ctx.offload(ctx.parts.vcs.read_ref, ctx.branch(task))
    if at is not None and at in (step.commit, step.start_point):
        failpoints.hit("before:branch_removal")
        await ctx.offload(ctx.parts.vcs.delete_ref, ctx.branch(task), at)
        failpoints.hit("after:branch_removal")
