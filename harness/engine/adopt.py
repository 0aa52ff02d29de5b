"""The result of a nested run becomes the result of the step that it was spawned for, judged like any other."""

from __future__ import annotations

from harness.engine import delegate, gate, judgement, keep, tripwire
from harness.engine.context import Context
from harness.model import events as ev
from harness.model.changes import Change, Snapshot
from harness.model.ids import CommitId, TaskId
from harness.model.verdict import Failure, Reason


async def adopt(ctx: Context, task: TaskId) -> None:
    """Parks the nested integration head if it passes the parent's own rules; logs the failure if it does not."""
    if not ctx.step(task).ready:
        taken = await _taken(ctx, task)
        failure = _first_cause(ctx, task, await _verdict(ctx, task, taken))
        if failure is not None:
            await keep.work(ctx, task, _number(ctx, task), taken, failure.reason)
        _finish(ctx, task, failure)
    if ctx.step(task).ready:
        delegate.park(ctx, task)


def _first_cause(ctx: Context, task: TaskId, failure: Failure | None) -> Failure | None:
    """A recovery that fails does not hide what it was to mend: the reason, and so the exit code, stays the first one."""
    step = ctx.step(task)
    if failure is None or not step.recovering or step.last_reason is None:
        return failure
    said = f"the recovery failed, too: {failure.reason}: {failure.message}"
    return Failure(Reason(step.last_reason), said, failure.paths, failure.hint)


async def keep_nested(ctx: Context, task: TaskId, why: str) -> None:
    """Keeps what a nested run integrated although its parent will not be."""
    await keep.work(ctx, task, _number(ctx, task), await _taken(ctx, task), why)


def _number(ctx: Context, task: TaskId) -> int:
    return max(1, ctx.step(task).attempts)


async def _taken(ctx: Context, task: TaskId) -> Snapshot:
    """What the nested run integrated, logged as the step's snapshot, with the step's branch on it."""
    step, vcs = ctx.step(task), ctx.parts.vcs
    head = CommitId(step.child_head or "")
    changes = await ctx.offload(vcs.changes, CommitId(step.start_point or ""), head)
    taken = Snapshot(head, await ctx.offload(vcs.tree_of, head), changes)
    keep.note(ctx, task, _number(ctx, task), taken)
    await keep.point(ctx, ctx.branch(task), head)
    return taken


async def _verdict(ctx: Context, task: TaskId, taken: Snapshot) -> Failure | None:
    step, contract = ctx.step(task), ctx.contract(task)
    if step.child_status != "succeeded":
        reason = Reason(step.child_reason or Reason.NESTED_FAILED)
        return Failure(reason, f"run {step.child_run}: {step.message}", hint="its own steps say why")
    own = [change for change in taken.changes if not _is_report(ctx, change)]
    failure = (
        judgement.size(task, contract, own)
        or judgement.violation(task, contract, judgement.outside(contract, own))
        or judgement.emptiness(task, contract, own)
    )
    if failure is not None or not contract.checks:
        return failure
    with ctx.flying(task):
        failure = await gate.checks_apart(ctx, task, taken.commit, taken.tree, "nested")
        await tripwire.look(ctx)
    return tripwire.verdict(ctx, task) or failure


def _is_report(ctx: Context, change: Change) -> bool:
    """With `reports = "commit"` the harness itself added the nested reports."""
    return ctx.options.reports == "commit" and change.path.startswith(".orchestrix/step-")


def _finish(ctx: Context, task: TaskId, failure: Failure | None) -> None:
    finished = ctx.fact(
        task,
        ev.AttemptFinished,
        attempt=_number(ctx, task),
        ok=failure is None,
        reason=None if failure is None else failure.reason,
        message="" if failure is None else failure.message,
        paths=[] if failure is None else list(failure.paths),
        duration_ms=0,
    )
    failed = [] if failure is None else [_counted(ctx, task, failure)]
    ctx.journal.append(finished, *failed)


def _counted(ctx: Context, task: TaskId, failure: Failure) -> ev.TaskFailed:
    count = ctx.step(task).failed_attempts + 1
    return ev.TaskFailed(task=task, error=failure.reason, fail_count=count, final=False)
