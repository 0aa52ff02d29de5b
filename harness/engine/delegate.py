"""One sub-agent from `created` to `waiting_for_merge` or `failed`."""

from __future__ import annotations

import asyncio

from harness.engine import attempt, combine, reports
from harness.engine.context import Context
from harness.model import events as ev
from harness.model import limits
from harness.model.ids import TaskId
from harness.model.lifecycle import State
from harness.model.state import StepState
from harness.model.verdict import Failure, Reason


async def delegate(ctx: Context, task: TaskId, needs: tuple[int, ...]) -> None:
    """Starts the step where its needs are, tries as often as the contract allows, and parks or fails it."""
    if ctx.step(task).state is State.CREATED:
        start = await combine.start_point(ctx, task, needs)
        if isinstance(start, Failure):
            fail(ctx, task, start)
            return
        ctx.note(task, ev.SubagentStarted, start_point=start, branch=ctx.branch(task))
    failure = await _attempts(ctx, task)
    if failure is not None:
        fail(ctx, task, failure)
    else:
        park(ctx, task)


async def _attempts(ctx: Context, task: TaskId) -> Failure | None:
    """Tries until an attempt is ready to park; what the log says of earlier attempts counts, whoever made them."""
    while not ctx.step(task).ready:
        step = ctx.step(task)
        failure = last_failure(step)
        if failure is not None and final(failure, step, ctx.contract(task).execution.max_retries):
            return failure
        deadly = exhausted(ctx, task)
        if deadly is not None:
            return deadly
        if failure is not None:
            await asyncio.sleep(pause_ms(failure, step, ctx.options.backoff_base_ms) / 1000)
        await attempt.run(ctx, task, step.message or _message_before_retry(ctx, task))
    return None


def _message_before_retry(ctx: Context, task: TaskId) -> str | None:
    """Why the sub-agent failed that this one replaces."""
    before = [step for step in ctx.journal.state.superseded if step.task_id == task]
    return before[-1].message if before else None


def exhausted(ctx: Context, task: TaskId) -> Failure | None:
    """Coordinators die by chance, but not always in the same step."""
    deaths = ctx.step(task).recoveries
    if deaths <= ctx.options.recoveries:
        return None
    return Failure(Reason.RECOVERIES_EXHAUSTED, f"the coordinator died {deaths} times in step {task}")


def last_failure(step: StepState) -> Failure | None:
    """Why the last finished attempt failed, from the log."""
    if step.last_reason is None:
        return None
    reason = Reason(step.last_reason)
    return Failure(reason, step.message or "", step.last_paths, retry_after_ms=step.last_retry_ms)


def final(failure: Failure, step: StepState, max_retries: int) -> bool:
    """Whether no further attempt may be made; a rate limit pauses without using up a retry, but not for ever."""
    if failure.reason is Reason.RATE_LIMITED:
        return step.pauses > limits.RATE_LIMIT_PAUSES
    return not failure.retryable or step.failed_attempts > max_retries


def pause_ms(failure: Failure, step: StepState, base_ms: int) -> int:
    """How long to wait: what the agent asked for, or base x 2^(fail_count - 1) up to a ceiling."""
    if failure.retry_after_ms is not None:
        return min(failure.retry_after_ms, limits.RATE_LIMIT_CEILING_MS)
    return min(base_ms << max(0, min(step.failed_attempts, 32) - 1), limits.BACKOFF_CEILING_MS)


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
