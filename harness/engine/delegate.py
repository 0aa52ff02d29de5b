"""One sub-agent from `created` to `waiting_for_merge` or `failed`."""

from __future__ import annotations

from harness.engine import attempt, combine, reports
from harness.engine.context import Context
from harness.model import events as ev
from harness.model.ids import TaskId
from harness.model.lifecycle import State
from harness.model.verdict import Failure, Reason


async def try_once(ctx: Context, task: TaskId, needs: tuple[int, ...]) -> None:
    """Starts the step where its needs are, makes one attempt and parks what is ready; what no attempt can mend fails it.

    Done again after a crash it goes on from wherever the log says the step is.
    """
    started = None
    if ctx.step(task).state is State.CREATED:
        start = await combine.start_point(ctx, task, needs)
        if isinstance(start, Failure):
            fail(ctx, task, start)
            return
        started = ctx.fact(task, ev.SubagentStarted, start_point=start, branch=ctx.branch(task))
    if not ctx.step(task).ready:
        deadly = exhausted(ctx, task) or _too_deep(ctx, task)
        if deadly is not None:
            fail(ctx, task, deadly)
            return
        await attempt.run(ctx, task, ctx.step(task).message or _message_before_retry(ctx, task), started)
    if ctx.step(task).ready:
        park(ctx, task)


def _message_before_retry(ctx: Context, task: TaskId) -> str | None:
    """Why the sub-agent failed that this one replaces."""
    before = [step for step in ctx.journal.state.superseded if step.task_id == task]
    return before[-1].message if before else None


def _too_deep(ctx: Context, task: TaskId) -> Failure | None:
    """Written steps that the contract does not let the step have: no agent can do them in its place."""
    if ctx.contract(task).work.subplan is None or ctx.options.replay:
        return None
    said = f"step {task} has `steps`, but its contract allows no deeper level"
    return Failure(Reason.TOOL_DENIED, said, hint="see `max_delegation_depth`; a recovery may not delegate")


def exhausted(ctx: Context, task: TaskId) -> Failure | None:
    """Fails a step during which the coordinator died more than `recoveries` times."""
    deaths = ctx.step(task).recoveries
    if deaths <= ctx.options.recoveries:
        return None
    return Failure(Reason.RECOVERIES_EXHAUSTED, f"the coordinator died {deaths} times in step {task}")


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
    failed = ctx.fact(
        task,
        ev.SubagentFailed,
        reason=failure.reason,
        message=failure.message if not failure.hint else f"{failure.message} ({failure.hint})",
        paths=list(failure.paths),
        kept_ref=step.kept_ref,
        commit=step.commit,
    )
    ctx.journal.append(failed, ctx.task_failed(task, failure.reason))
