"""Opening and removing workspaces with their intent in the log first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness.engine import failpoints
from harness.engine.context import Context
from harness.model import events as ev
from harness.model.changes import Workspace
from harness.model.ids import CommitId, RefName, TaskId


async def open_for(
    ctx: Context, task: TaskId, start: CommitId, branch: RefName | None, purpose: str = "attempt"
) -> Workspace:
    """A fresh, prepared worktree; what an interrupted coordinator left under the same name is replaced."""
    vcs = ctx.parts.vcs
    name = task if purpose == "attempt" else f"{task}.{purpose}"
    path = vcs.workspace_path(ctx.run_id, name)
    attempt = ctx.step(task).attempts + (1 if purpose == "attempt" else 0)
    ctx.note(task, ev.WorkspacePreparing, path=str(path), start_point=start, attempt=attempt, purpose=purpose)
    failpoints.hit("before:workspace")
    workspace = await ctx.offload(vcs.open_workspace, ctx.run_id, name, start, branch)
    failpoints.hit("between:workspace")
    await ctx.offload(vcs.prepare, ctx.run_id, name, ctx.options.copy, ctx.options.link)
    failpoints.hit("after:workspace")
    return workspace


@asynccontextmanager
async def temporary(ctx: Context, task: TaskId, start: CommitId, purpose: str) -> AsyncIterator[Workspace]:
    """A detached worktree for checks; nothing in it is work, so it goes away again."""
    workspace = await open_for(ctx, task, start, None, purpose)
    try:
        yield workspace
    finally:
        await ctx.offload(ctx.parts.vcs.remove_workspace, ctx.run_id, workspace.name)
    ctx.note(task, ev.WorkspaceRemoved, path=str(workspace.path))


async def remove(ctx: Context, task: TaskId) -> None:
    """Removes what the step left on disk; its work is merged or kept by now."""
    for path in ctx.step(task).workspaces:
        name = path.rsplit("/", 1)[-1]
        failpoints.hit("before:workspace_removal")
        await ctx.offload(ctx.parts.vcs.remove_workspace, ctx.run_id, name)
        failpoints.hit("after:workspace_removal")
        ctx.note(task, ev.WorkspaceRemoved, path=path)
