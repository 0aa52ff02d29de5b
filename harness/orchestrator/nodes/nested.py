"""Nodes for a task that becomes the parent of a nested run: analyse it, plan the run, run it, judge what came back."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from typing import Any

from harness.engine import adopt, combine, create, delegate, ending, integrate, launch
from harness.engine.context import Context
from harness.errors import (
    MACHINE_FAULTS,
    EnvironmentProblem,
    ModelFailed,
    ModelFault,
    NotFound,
    OrchestrixError,
    PlanningFailed,
    StoreFailed,
)
from harness.model import duration, nesting
from harness.model import events as ev
from harness.model.ids import CommitId, RunId, TaskId
from harness.model.lifecycle import State
from harness.model.nesting import Nest
from harness.model.personas import capped
from harness.model.plan import Plan
from harness.model.schedule import schedule
from harness.model.state import RunState
from harness.model.supervision import TERMINATIONS
from harness.model.verdict import Failure, Reason
from harness.orchestrator import model_session, nested_plan, personas
from harness.orchestrator.run import Run
from harness.ports import Lease

_ENDED_EARLY = {Reason.TIMEOUT.value, *TERMINATIONS}  # by the parent's time limit, or by a limit of the whole run


async def analyse(run: Run, task: TaskId) -> None:
    """complexity_analyzer: whether a task is executed as it is or split first; rules decide, a model only about the rest."""
    run.start(task, _analyse(run.ctx, task))


async def _analyse(ctx: Context, task: TaskId) -> None:
    terms = ctx.contract(task)
    if ctx.options.replay:
        _analysed(ctx, task, "execute", ["a recording holds its result"])
        return
    if terms.work.subplan is not None:
        _analysed(ctx, task, "spawn", ["the plan gives its steps"])
        return
    from harness.orchestrator.thinking import analysis  # noqa: PLC0415 - most contracts leave no such question open

    found = await analysis.analyse(
        model_session.open_session(ctx, task),
        terms,
        terms.work.decompose,
        paths=await ctx.offload(ctx.parts.vcs.paths, ctx.base),
        depth=ctx.depth,
        max_depth=ctx.depth + terms.permissions.max_delegation_depth,
    )
    _analysed(ctx, task, found.decision, list(found.reasons), found.recommended_tools)


def _analysed(ctx: Context, task: TaskId, decision: str, reasons: list[str], tools: tuple[str, ...] = ()) -> None:
    ctx.journal.append(
        ev.ComplexityAnalyzed(task=task, decision=decision, reasons=reasons, recommended_tools=list(tools))
    )


async def spawn(run: Run, task: TaskId) -> None:
    """spawn_subAgent: a complex or failed task becomes the parent of a nested run; its plan is a fact before anything starts."""
    run.start(task, _spawn(run, task))


async def _spawn(run: Run, task: TaskId) -> None:
    ctx = run.ctx
    if ctx.step(task).state is State.CREATED:
        start = await combine.start_point(ctx, task, run.needs(task))
        if isinstance(start, Failure):
            await _fail(ctx, task, start)
            return
        ctx.note(task, ev.SubagentStarted, start_point=start, branch=ctx.branch(task))
    try:
        plan = await _plan(ctx, task)
    except (PlanningFailed, ModelFailed, EnvironmentProblem) as error:
        said = f"step {task} could not be split: {error.message}"
        await _fail(ctx, task, Failure(_reason(error), said, hint=error.hint))
        return
    step = ctx.step(task)
    ctx.journal.append(
        ev.SubagentSpawned(
            task=task,
            subagent_id=f"{task}.1",
            parent_task_id=task,
            tasks_count=len(plan["steps"]),
            child_run=nesting.run_id(ctx.run_id, task, step.spawns + 1 + _earlier(ctx, task)),
            persona=personas.RECOVERY if step.recovering else personas.SUBAGENT,
            plan=plan,
        )
    )


def _earlier(ctx: Context, task: TaskId) -> int:
    """Spawns of the sub-agents that this one replaces: their runs keep their names."""
    return sum(old.spawns for old in ctx.journal.state.superseded if old.task_id == task)


async def _plan(ctx: Context, task: TaskId) -> dict[str, Any]:
    """The failed step once more, what its agent asked for, the plan's own steps, or what a model makes of it."""
    terms = ctx.contract(task)
    if ctx.step(task).recovering:
        return nested_plan.recovery(terms, ctx.step(task))
    if ctx.step(task).child_plan:
        return nested_plan.delegated(dict(ctx.step(task).child_plan), terms)
    if terms.work.subplan is not None:
        return dict(terms.work.subplan)
    asking = model_session.open_session(ctx, task)
    if asking is None:
        raise EnvironmentProblem("no model is configured", hint="give the step its `steps`, or configure a model")
    from harness.orchestrator.thinking import bounds, planner  # noqa: PLC0415 - a run without a model pays nothing

    start = CommitId(ctx.step(task).start_point or "")
    repository = await ctx.offload(model_session.survey, ctx.parts.vcs, start)
    within = bounds.of_step(terms, [terms.work.agent], depth=ctx.depth + 1)
    planned = await planner.decompose(asking, terms, within, repository=repository)
    return planned.loaded.plan.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def _fail(ctx: Context, task: TaskId, failure: Failure) -> None:
    delegate.fail(ctx, task, failure)
    await integrate.close(ctx, task)


def _reason(error: OrchestrixError) -> Reason:
    """A plan or an answer that cannot be used is the model's, or its agent's, bad response; anything else is a failure."""
    bad = error.kind is ModelFault.BAD_RESPONSE if isinstance(error, ModelFailed) else isinstance(error, PlanningFailed)
    return Reason.BAD_RESPONSE if bad else Reason.AGENT_FAILED


async def execute(run: Run, task: TaskId) -> None:
    """subAgent_executor: the nested run of a task, from wherever its own log says it is to its end.

    It is resumed with its parent, cancelled with it, and under a lease of the same process.
    """
    run.start(task, _execute(run, task))


async def _execute(run: Run, task: TaskId) -> None:
    ctx, store = run.ctx, run.ctx.parts.store
    child = RunId(ctx.step(task).child_run or "")
    lease = await ctx.offload(store.acquire, child, dict(ctx.holder))
    try:
        _share_budget(ctx, lease, store.state(child))
    except NotFound:
        create.run(ctx.parts, lease, _request(ctx, task))
    state = await _carried_on(ctx, task, lease)
    if state.waiting is not None:
        run.tasks.waits[task] = state
        return
    ended = Reason(state.cancelling) if state.cancelling in _ENDED_EARLY else None
    ctx.journal.append(ending.returned(task, state, _why(state), ended))


async def _carried_on(ctx: Context, task: TaskId, lease: Lease) -> RunState:
    """The nested run at its end, or waiting; its parent's time limit and a fault that is its own end it early."""
    known = ctx.parts.store.state(lease.run_id)
    if known.cancelling is not None:  # a coordinator died while or after it ended the run
        if not known.ended:
            return await ending.end(ctx.parts, lease, ctx.holder, _unwatched, why="", above=ctx)
        ctx.parts.store.release(lease)
        return known
    limit_ms = ctx.contract(task).execution.attempt_timeout_ms
    try:
        async with asyncio.timeout(None if known.ended else (limit_ms - known.spent.wall_ms) / 1000):
            return await launch.carry_on(ctx.parts, lease, ctx.holder, _unwatched, above=ctx)
    except TimeoutError:
        reason, why = Reason.TIMEOUT, f"step {task} did not end within {duration.text(limit_ms)}"
    except EnvironmentProblem as error:
        if _is_of_the_machine(error):
            raise
        reason, why = Reason.STOPPED, error.message
    lease = ctx.parts.store.acquire(lease.run_id, dict(ctx.holder))
    return await ending.end(ctx.parts, lease, ctx.holder, _unwatched, why=why, reason=reason, above=ctx)


def _request(ctx: Context, task: TaskId) -> create.Request:
    step = ctx.step(task)
    plan = Plan.model_validate(dict(step.child_plan))
    persona, terms = personas.RECOVERY if step.recovering else personas.SUBAGENT, ctx.contract(task)
    within = capped(terms, personas.caps(terms.caps, persona)).model_copy(update={"persona": persona})
    errors = nested_plan.without_recovery(ctx.options.errors) if step.recovering else dict(ctx.options.errors)
    budget = nesting.remaining(ctx.journal.state.budget, ctx.journal.state.spent)
    return create.Request(
        plan=plan,
        schedule=schedule(plan),
        plan_path="",
        plan_digest=hashlib.sha256(ev.canonical(dict(step.child_plan)).encode()).hexdigest(),
        base=CommitId(step.start_point or ""),
        target=None,
        options=replace(ctx.options, errors=errors, budget=budget, bounds=_bounds(ctx), planning={}),
        nest=Nest(ctx.run_id, task, within),
    )


def _bounds(ctx: Context) -> dict[str, int]:
    """The run's own bounds, less the decisions that were made already."""
    state = ctx.journal.state
    left = {"max_steps": max(0, state.bounds["max_steps"] - state.decisions)} if "max_steps" in state.bounds else {}
    return {**state.bounds, **left}


def _share_budget(ctx: Context, lease: Lease, known: RunState) -> None:
    """A parent that was given more has more to give."""
    state = ctx.journal.state
    used = {name: getattr(known.spent, name) for name in state.budget}
    left = nesting.remaining(state.budget, state.spent)
    shared = {name: left[name] + used[name] for name in left if name != "wall_ms"}
    if any(known.budget.get(name) != amount for name, amount in shared.items()):
        ctx.parts.store.append(lease, [ev.BudgetChanged(budget=shared)])


def _why(state: RunState) -> str:
    failed = [step for step in state.ordered() if step.final_status == "failed"]
    if not failed:
        return f"{len(state.steps)} of {len(state.steps)} steps merged"
    first = failed[0]
    return f"step {first.task_id} failed: {first.close_reason}: {first.message}"


def _is_of_the_machine(error: EnvironmentProblem) -> bool:
    """Whether the whole run is hit and not the nested one: its store, or a disk, memory or descriptors that ran out."""
    cause = error.__cause__
    return isinstance(error, StoreFailed) or (isinstance(cause, OSError) and cause.errno in MACHINE_FAULTS)


def _unwatched(_fact: ev.Fact, _state: RunState) -> None:
    """A nested run is looked at through its parent."""


async def rejoin(run: Run, task: TaskId) -> None:
    """subAGENT_finalizer: what a nested run integrated becomes its parent's result, or its parent's failure."""
    run.start(task, adopt.adopt(run.ctx, task))
