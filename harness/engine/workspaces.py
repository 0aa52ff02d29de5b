"""Opening and removing workspaces with their intent in the log first.

A name holds the attempt and the coordinator's epoch: a coordinator that was paused and replaced can never reach into
a workspace of its successor.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from harness.engine import failpoints
from harness.engine.context import Context
from harness.errors import MACHINE_FAULTS, EnvironmentProblem, StoreFailed
from harness.model import events as ev
from harness.model.changes import Workspace, WorkspaceKind
from harness.model.ids import CommitId, RefName, TaskId, candidate_branch


async def for_attempt(
    ctx: Context, task: TaskId, attempt: int, candidate: int = 1, started: ev.SubagentStarted | None = None
) -> Workspace:
    """A fresh worktree at the step's start point, on the step's own branch or, for further candidates, on theirs."""
    start = CommitId((started or ctx.step(task)).start_point or "")
    kind, only = _for_work(ctx, task)
    if candidate == 1:
        purpose = f"attempt{attempt}"
        return await _open(ctx, task, start, ctx.branch(task), purpose, kind=kind, only=only, started=started)
    branch = candidate_branch(ctx.run_id, task, candidate)
    return await _open(ctx, task, start, branch, f"attempt{attempt}.{candidate}", kind=kind, only=only)


def stands(path: Path) -> bool:
    """Whether it still is the directory that was made; a link in its place could lead anywhere."""
    return path.is_dir() and not path.is_symlink()


def vanished(path: Path, error: EnvironmentProblem | OSError) -> bool:
    """Whether an error only says that a workspace was taken away meanwhile: then it is the step's, not the run's."""
    if isinstance(error, OSError):
        of_the_machine = error.errno in MACHINE_FAULTS
    else:
        of_the_machine = isinstance(error, StoreFailed) or bool(error.details.get("machine"))
    return not of_the_machine and not stands(path)


@asynccontextmanager
async def temporary(ctx: Context, task: TaskId, start: CommitId, purpose: str) -> AsyncIterator[Workspace]:
    """A detached worktree for checks; nothing in it is work, so it goes away again, also when its maker is stopped."""
    name = _name(ctx, task, purpose)
    try:
        yield await _open(ctx, task, start, None, purpose, kind=_for_checks(ctx))
    finally:
        await ctx.offload(ctx.parts.vcs.retire_workspace, ctx.run_id, name)
        ctx.note(task, ev.WorkspaceRemoved, path=str(ctx.parts.vcs.workspace_path(ctx.run_id, name)))


def _name(ctx: Context, task: TaskId, purpose: str) -> str:
    return f"{task}-{purpose}-{ctx.journal.lease.epoch}"


def _for_work(ctx: Context, task: TaskId) -> tuple[WorkspaceKind, tuple[str, ...] | None]:
    """The kind of an attempt's workspace and, for a sparse one, what it holds."""
    kind = ctx.parts.vcs.workspace_kind
    if kind.name != "sparse":
        return kind, None
    owned = ctx.contract(task).ownership.paths
    if owned is None:
        return WorkspaceKind("checkout", "the step owns everything: nothing can be left out"), None
    if ctx.options.replay:
        return WorkspaceKind("checkout", "recorded edits are laid over all files"), None
    return kind, (*owned, *ctx.options.sparse)


def _for_checks(ctx: Context) -> WorkspaceKind:
    kind = ctx.parts.vcs.workspace_kind
    return WorkspaceKind("checkout", "checks may read any file") if kind.name == "sparse" else kind


async def _open(
    ctx: Context,
    task: TaskId,
    start: CommitId,
    branch: RefName | None,
    purpose: str,
    *,
    kind: WorkspaceKind,
    only: Sequence[str] | None = None,
    started: ev.SubagentStarted | None = None,
) -> Workspace:
    vcs = ctx.parts.vcs
    name = _name(ctx, task, purpose)
    path = vcs.workspace_path(ctx.run_id, name)
    intent = ctx.fact(
        task,
        ev.WorkspacePreparing,
        path=str(path),
        start_point=start,
        purpose=purpose,
        workspace=kind.name,
        why=kind.why,
    )
    ctx.journal.append(*([started] if started else []), intent)
    failpoints.hit("before:workspace")
    try:
        workspace = await ctx.offload(vcs.open_workspace, ctx.run_id, name, start, branch, only)
    except (EnvironmentProblem, OSError) as error:
        if not vanished(path, error):
            raise
        workspace = await ctx.offload(vcs.open_workspace, ctx.run_id, name, start, branch, only)
    failpoints.hit("between:workspace")
    try:
        await ctx.offload(vcs.prepare, ctx.run_id, name, ctx.options.copy, ctx.options.link)
    except (EnvironmentProblem, OSError) as error:
        if not vanished(path, error):
            raise  # else what is done in it next finds it gone, and is a part of the attempt
    failpoints.hit("after:workspace")
    return workspace


async def remove_all(ctx: Context, task: TaskId) -> list[ev.Fact]:
    """Removes what the step left on disk, merged or kept by now; the facts are the caller's to log with the rest."""
    return [await remove(ctx, task, path) for path in ctx.step(task).workspaces]


async def remove(ctx: Context, task: TaskId, path: Path | str) -> ev.Fact:
    """Doing it again after a crash does no harm, so that the outcome may be logged with what comes next."""
    failpoints.hit("before:workspace_removal")
    await ctx.offload(ctx.parts.vcs.retire_workspace, ctx.run_id, os.path.basename(path))  # noqa: PTH119 - a text where the log gave it
    failpoints.hit("after:workspace_removal")
    return ctx.fact(task, ev.WorkspaceRemoved, path=str(path))
