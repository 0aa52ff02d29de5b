"""One sub-agent from `created` to `waiting_for_merge` or `failed`."""

from __future__ import annotations

import asyncio

from harness.engine import attempt, combine, reports
from harness.engine.context import Context
from harness.model import events as ev
from harness.model import limits
from harness.model.ids import TaskId
from harness.model.lifecycle import State
from harness.model.verdict import Failure, Reason


async def delegate(ctx: Context, task: TaskId, needs: tuple[int, ...]) -> None:
    """Starts the step where its needs are, tries as often as the contract allows, and parks or fails it."""
    if ctx.step(task).state is State.CREATED:
        start = await combine.start_point(ctx, task, needs)
        if isinstance(start, Failure):
            fail(ctx, task, start)
            return
        ctx.note(task, ev.SubagentStarted, start_point=start, branch=ctx.branch(task))
    if ctx.step(task).recoveries > ctx.options.recoveries:
        times = ctx.step(task).recoveries
        fail(ctx, task, Failure(Reason.RECOVERIES_EXHAUSTED, f"the coordinator died {times} times in step {task}"))
        return
    failure = await _attempts(ctx, task)
    if failure is not None:
        fail(ctx, task, failure)
    else:
        park(ctx, task)


async def _attempts(ctx: Context, task: TaskId) -> Failure | None:
    allowed = ctx.contract(task).execution.max_retries
    while True:
        failure = await attempt.run(ctx, task, ctx.step(task).message)
        if failure is None:
            return None
        failed = ctx.step(task).failed_attempts
        if failure.reason is Reason.RATE_LIMITED:
            await asyncio.sleep((failure.retry_after_ms or backoff_ms(ctx.options.backoff_base_ms, 1)) / 1000)
        elif not failure.retryable or failed > allowed:
            return failure
        else:
            await asyncio.sleep(backoff_ms(ctx.options.backoff_base_ms, failed) / 1000)


def backoff_ms(base_ms: int, fail_count: int) -> int:
    """Exponential: base x 2^(fail_count - 1), up to a ceiling."""
    return min(base_ms << max(0, min(fail_count, 32) - 1), limits.BACKOFF_CEILING_MS)


def park(ctx: Context, task: TaskId) -> None:
    """The child's work is done and reported; the parent still must integrate it."""
    step = ctx.step(task)
    where = reports.park(ctx, task)
    ctx.note(
        task,
        ev.SubagentWaitingForMerge,
        commit=step.commit,
        tree=step.tree,
        changed_paths=list(step.changed_paths),
        report=where,
    )


def fail(ctx: Context, task: TaskId, failure: Failure) -> None:
    """The child failed before it parked."""
    step = ctx.step(task)
    ctx.note(
        task,
        ev.SubagentFailed,
        reason=failure.reason,
        message=failure.message if not failure.hint else f"{failure.message} ({failure.hint})",
        paths=list(failure.paths),
        kept_ref=step.kept_ref,
        commit=step.commit,
    )
