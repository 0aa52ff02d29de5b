"""Watches the parent repository around steps that no sandbox keeps out of it.

Steps run side by side, so a change cannot be pinned on one of them: every step that was in flight is answerable.
"""

from __future__ import annotations

from harness.engine.context import Context
from harness.model import events as ev
from harness.model.ids import TaskId
from harness.model.verdict import Failure, Reason


async def arm(ctx: Context) -> None:
    """Remembers the parent as it is; where a sandbox keeps every step out of it, nobody will ask."""
    if not ctx.parts.processes.protects_parent:
        await ctx.offload(ctx.parts.vcs.seal_parent, ctx.run_id)


async def look(ctx: Context) -> None:
    """Logs what changed in the parent since the last look."""
    if ctx.parts.processes.protects_parent:
        return
    drift = await ctx.offload(ctx.parts.vcs.parent_drift, ctx.run_id)
    during = ctx.flying_now
    if drift.tampered:
        ctx.journal.append(ev.ParentTampered(what=list(drift.tampered), during=list(during)))
        for task in during:
            ctx.tampered.setdefault(task, []).extend(drift.tampered)
    if drift.changed:
        ctx.journal.append(ev.ParentChanged(what=list(drift.changed), during=list(during)))
        for task in during:
            ctx.changed.setdefault(task, []).extend(drift.changed)


def verdict(ctx: Context, task: TaskId) -> Failure | None:
    """The failure that this step must answer for, if there is one."""
    tampered, changed = ctx.tampered.get(task), ctx.changed.get(task)
    if tampered:
        return Failure(
            Reason.PARENT_TAMPERED,
            f"the parent repository was tampered with while step {task} ran: {'; '.join(tampered[:10])}",
            tuple(tampered),
            hint="inspect these before you run git here again",
        )
    if changed and ctx.options.strict_parent:
        return Failure(
            Reason.PARENT_CHANGED,
            f"the parent checkout changed while step {task} ran: {'; '.join(changed[:10])}",
            tuple(changed),
        )
    return None
