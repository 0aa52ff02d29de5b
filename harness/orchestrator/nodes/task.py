"""Nodes for one task: try it, integrate what it made, give it up, or do what the error policy says."""

from __future__ import annotations

from datetime import timedelta

from harness.engine import create, delegate
from harness.engine import integrate as integration
from harness.engine.context import Context
from harness.model import events as ev
from harness.model.error_actions import Action
from harness.model.ids import TaskId
from harness.model.lifecycle import State
from harness.model.state import StepState
from harness.model.verdict import Failure
from harness.orchestrator import error_policy
from harness.orchestrator.run import Run


async def execute(run: Run, task: TaskId) -> None:
    """task_executor: one attempt at the task."""
    run.start(task, _attempt(run, task))


async def _attempt(run: Run, task: TaskId) -> None:
    if run.step(task).state in (State.CREATED, State.RUNNING):
        async with run.ctx.slots:
            await delegate.try_once(run.ctx, task, run.needs(task))
    if run.step(task).state is State.FAILED:
        await integration.close(run.ctx, task)


async def integrate(run: Run, task: TaskId) -> None:
    """task_updater: applies the task's result to the run, and closes the task."""
    run.start(task, _update(run, task))


async def _update(run: Run, task: TaskId) -> None:
    ctx, step = run.ctx, run.step(task)
    if step.state is State.WAITING_FOR_MERGE:
        failure = run.board().abandoned(step) or await integration.integrate(ctx, task, run.needs(task))
        if failure is not None and _has_policy(ctx, failure):
            ctx.note(
                task, ev.IntegrationRefused, reason=failure.reason, message=failure.message, paths=list(failure.paths)
            )
            return
        if failure is not None:
            await integration.refuse(ctx, task, failure)
    await integration.close(ctx, task)


def _has_policy(ctx: Context, failure: Failure) -> bool:
    """Whether the map says more than that the child failed, which is what a failed integration is by default."""
    return ctx.options.errors.get(failure.reason, Action.MARK_FAILED) != Action.MARK_FAILED


async def give_up(run: Run, task: TaskId) -> None:
    """task_planner: gives up a task that stands on a failure; an attempt under way is ended first, its work is kept."""
    run.start(task, _give_up(run.ctx, task, run.board().abandoned(run.step(task))))


async def _give_up(ctx: Context, task: TaskId, lost: Failure | None) -> None:
    if lost is not None and ctx.step(task).state in (State.CREATED, State.RUNNING):
        delegate.fail(ctx, task, lost)
    await integration.close(ctx, task)


async def fall_back(run: Run, task: TaskId) -> None:
    """error_fallback: what follows a failed attempt, or work that cannot be integrated, by the map of actions.

    Every branch ends in a fact that gives the task back to the router, or closes it.
    """
    refused = run.step(task).refused
    run.start(task, _after_refusal(run.ctx, task) if refused else _after_attempt(run.ctx, task))


async def _after_attempt(ctx: Context, task: TaskId) -> None:
    step, action = ctx.step(task), Action.MARK_FAILED
    if step.state is State.RUNNING:
        retries = ctx.contract(task).execution.max_retries
        action = error_policy.after_attempt(step, retries, ctx.options.errors)
        if action is Action.SPAWN_RECOVERY and ctx.options.replay:
            action = Action.RETRY  # what the recovery made is the next recorded attempt
    if action is Action.RETRY:
        _schedule(ctx, task, step)
    elif action is Action.ESCALATE:
        _escalate(ctx, task, step)
    elif action is Action.SPAWN_RECOVERY:
        reasons = [f"recovery from {step.last_reason}"]
        ctx.journal.append(ev.ComplexityAnalyzed(task=task, decision="spawn", reasons=reasons, recovery=True))
    else:
        if step.state is State.RUNNING:
            delegate.fail(ctx, task, error_policy.last_failure(step))
        await integration.close(ctx, task)


async def _after_refusal(ctx: Context, task: TaskId) -> None:
    step = ctx.step(task)
    earlier = [other for other in ctx.journal.state.superseded if other.task_id == task]
    retries = ctx.contract(task).execution.max_retries
    action = error_policy.after_refusal(step, len(earlier), retries, ctx.options.errors)
    if action is Action.ESCALATE and step.state is State.WAITING_FOR_MERGE:
        _escalate(ctx, task, step)
        return
    if step.state is State.WAITING_FOR_MERGE:
        await integration.refuse(ctx, task, error_policy.last_failure(step))
    again = [_successor(ctx, step, len(earlier))] if action is Action.RETRY else []
    await integration.close(ctx, task, *again)


def _successor(ctx: Context, step: StepState, earlier: int) -> ev.SubagentCreated:
    """The step again, on what is integrated by now; logged with the end of the one that it replaces."""
    return create.subagent(
        ctx.plan,
        ctx.run_id,
        step.step_idx,
        ctx.options.sandbox,
        generation=2 + earlier,
        origin=ctx.journal.state.head,
        nest=ctx.nest,
        personas=ctx.options.personas,
    )


def _schedule(ctx: Context, task: TaskId, step: StepState) -> None:
    pause = error_policy.pause_ms(error_policy.last_failure(step), step, ctx.options.backoff_base_ms)
    due = ctx.parts.clock.now() + timedelta(milliseconds=pause)
    ctx.journal.append(
        ev.TaskRetryScheduled(
            task=task,
            error=step.last_reason or "",
            fail_count=step.failed_attempts,
            pause_ms=pause,
            next_attempt_at=due.isoformat(),
        )
    )


def _escalate(ctx: Context, task: TaskId, step: StepState) -> None:
    ctx.journal.append(ev.TaskEscalated(task=task, error=step.last_reason or "", message=step.message or ""))
