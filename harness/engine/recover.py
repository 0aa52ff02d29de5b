"""What a new coordinator does first: the log says what was under way, and the repository says how far it came."""

from __future__ import annotations

from pathlib import Path

from harness.engine import integrate, keep, race, workspaces
from harness.engine.context import Context
from harness.model import events as ev
from harness.model.ids import CommitId, TaskId
from harness.model.lifecycle import State
from harness.model.process import ProcessIdentity


async def recover(ctx: Context) -> None:
    """Ends orphans, removes dead locks, keeps interrupted work, and finishes a merge whose ref had moved already."""
    if ctx.journal.state.coordinators > 1:
        await ctx.offload(ctx.parts.vcs.unlock_run, ctx.run_id)
    if ctx.journal.state.cancelling is None:  # nothing is integrated in a run that is only to be closed
        await _integration_ref(ctx)
    for step in ctx.journal.state.ordered():
        task = TaskId(step.task_id)
        _end_orphans(ctx, task)
        if step.state is State.RUNNING:
            await _keep_interrupted(ctx, task)
        elif step.state is State.WAITING_FOR_MERGE and step.intended_merge:
            await _finish_merge(ctx, task, CommitId(step.intended_merge))


async def _integration_ref(ctx: Context) -> None:
    """The run may have died between its first line and its first ref."""
    if await ctx.offload(ctx.parts.vcs.read_ref, ctx.integration_ref) is None:
        await ctx.offload(ctx.parts.vcs.move_ref, ctx.integration_ref, CommitId(ctx.journal.state.head), None)


def _end_orphans(ctx: Context, task: TaskId) -> None:
    if ctx.step(task).done:
        return
    for fact in ctx.journal.facts(task):
        if isinstance(fact, ev.ProcessStarted):
            ctx.parts.processes.end_orphan(ProcessIdentity(fact.pid, fact.start_time, fact.boot_id))


async def _keep_interrupted(ctx: Context, task: TaskId) -> None:
    """The files that a dead coordinator's attempt left; the next attempt starts clean, these stay reachable."""
    step = ctx.step(task)
    if step.ready:
        return
    for path in map(Path, step.workspaces):
        workspace = await ctx.offload(ctx.parts.vcs.find_workspace, ctx.run_id, path.name)
        if workspace is not None and workspace.branch is not None:
            number = max(1, step.attempts)
            candidate = race.candidate_of(ctx, task, str(path))
            await keep.interrupted(ctx, task, number, workspace, candidate=candidate)
        ctx.journal.append(await workspaces.remove(ctx, task, path))


async def _finish_merge(ctx: Context, task: TaskId, intended: CommitId) -> None:
    """Intent was logged; the ref tells whether the effect happened."""
    if await ctx.offload(ctx.parts.vcs.read_ref, ctx.integration_ref) == intended:
        tree = await ctx.offload(ctx.parts.vcs.tree_of, intended)
        integrate.note_merged(ctx, task, CommitId(ctx.journal.state.head), intended, tree)
