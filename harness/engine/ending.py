"""The end of a run before its steps are done: every child is closed, what was not done as failed, and all work is kept.

The intent is in the log first (`run.cancelled` with `end`, or a safe stop among the decisions), so that a coordinator that dies in between leaves a run that
the next one ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from harness.engine import adopt, create, delegate, finish, integrate, keep, launch
from harness.engine.context import Context
from harness.engine.journal import Watch
from harness.engine.parts import Parts
from harness.errors import NotFound
from harness.model import events as ev
from harness.model.ids import RunId, TaskId
from harness.model.lifecycle import RunStatus, State
from harness.model.state import RunState
from harness.model.verdict import Failure, Reason
from harness.ports import Lease


async def end(
    parts: Parts,
    lease: Lease,
    holder: Mapping[str, object],
    watch: Watch,
    *,
    why: str,
    reason: Reason = Reason.CANCELLED,
    above: Context | None = None,
) -> RunState:
    """Closes every child of a run and of the runs below it, for `reason`; the lease is given back however this ends."""
    known = parts.store.state(lease.run_id)
    if known.cancelling is None or known.ended:  # ended, but its record is not written
        parts.store.append(lease, [ev.RunCancelled(cause=why, end=True, reason=reason)])
    return await launch.carry_on(replace(parts, drive=parts.close), lease, holder, watch, above)


async def carry_on(parts: Parts, lease: Lease, holder: Mapping[str, object], watch: Watch) -> RunState:
    """Carries on with a run; one that was being ended is closed first, then its cancelled steps get successors."""
    state = parts.store.state(lease.run_id)
    if state.cancelling is not None and not state.ended:
        state = await end(parts, lease, holder, watch, why="")
        if state.status is not RunStatus.CANCELLED:
            return state
        lease = parts.store.acquire(lease.run_id, dict(holder))
    if state.ended and state.status is RunStatus.CANCELLED:
        again = [step.step_idx for step in state.ordered() if step.close_reason == Reason.CANCELLED]
        parts.store.append(lease, [create.successor(state, idx) for idx in again])
    return await launch.carry_on(parts, lease, holder, watch)


async def close_all(ctx: Context) -> None:
    """Every child that is not done, and the runs below; then the run has its outcome."""
    reason = Reason(ctx.journal.state.cancelling or Reason.CANCELLED)
    why = next(_intents(ctx), "")
    for step in ctx.journal.state.ordered():
        if not step.done:
            await _close(ctx, TaskId(step.task_id), Failure(reason, f"step {step.task_id} was not done: {why}"))
    await finish.finish(ctx, "", ended=reason)


def _intents(ctx: Context) -> Iterator[str]:
    """Why the run is ended, the last word first."""
    kinds = (ev.RunCancelled.type, ev.RoutingDecision.type)
    facts = [envelope.fact() for envelope in ctx.parts.store.events(ctx.run_id) if envelope.type in kinds]
    for fact in reversed(facts):
        if isinstance(fact, ev.RunCancelled) and fact.end:
            yield fact.cause
        if isinstance(fact, ev.RoutingDecision) and fact.termination_reason is not None:
            yield fact.reason


async def _close(ctx: Context, task: TaskId, failure: Failure) -> None:
    if ctx.step(task).child_run is not None:
        await _close_nested(ctx, task, failure)
    step = ctx.step(task)
    if step.state is State.WAITING_FOR_MERGE:
        await integrate.refuse(ctx, task, failure)
    elif step.state in (State.CREATED, State.RUNNING):
        if step.ready:  # judged and not yet parked: only its branch is on the work
            taken = await integrate.snapshot_of(ctx, task)
            await keep.work(ctx, task, step.attempts, taken, failure.reason)
        delegate.fail(ctx, task, failure)
    await integrate.close(ctx, task)


async def _close_nested(ctx: Context, task: TaskId, failure: Failure) -> None:
    """The run below is ended first; what was integrated in it is kept as the work of its parent."""
    store, step = ctx.parts.store, ctx.step(task)
    child = RunId(step.child_run or "")
    try:
        known = store.state(child)
    except NotFound:  # announced, but never begun
        return
    if not known.ended:
        lease = store.acquire(child, dict(ctx.holder))
        known = await end(
            ctx.parts, lease, ctx.holder, _unwatched, why=failure.message, reason=failure.reason, above=ctx
        )
    if step.child_status is None:
        ctx.journal.append(returned(task, known, failure.message))
    if step.state is State.RUNNING and not step.ready:
        await adopt.keep_nested(ctx, task, failure.reason)


def returned(task: TaskId, state: RunState, message: str, reason: Reason | None = None) -> ev.SubagentReturned:
    """The fact that a nested run has its outcome; `reason` is the parent's failure where it is not `nested_failed`."""
    spent = state.spent
    return ev.SubagentReturned(
        task=task,
        child_run=state.run_id,
        status=state.status.value,
        head=state.head,
        message=message,
        usage={
            "tokens": spent.tokens,
            "cost_usd": spent.cost_usd,
            "attempts": spent.attempts,
            "decisions": state.decisions,
        },
        told=state.usage,
        reason=reason,
    )


def _unwatched(_fact: ev.Fact, _state: RunState) -> None:
    """Nobody looks at a nested run's own log while it goes on."""
