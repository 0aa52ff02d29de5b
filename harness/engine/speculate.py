"""Gates begun ahead: while a step's checks run, those of the steps behind it start as if it had passed.

A guess is bound to its merge commit, which names the head that it was built on and the step. It counts only if the
step's turn comes to that very commit, so the outcome is the one that gates one by one would have given. Until then
the log holds the intent and the processes, but no result: a coordinator that dies loses guesses and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import ExitStack, asynccontextmanager

from harness.engine import combine, delegate, gate, tripwire
from harness.engine.context import Context
from harness.engine.trial import Guess, Trial
from harness.model import events as ev
from harness.model.ids import CommitId, TaskId, TreeId
from harness.model.lifecycle import State
from harness.model.state import StepState
from harness.model.verdict import Failure


@asynccontextmanager
async def beyond(ctx: Context, task: TaskId, commit: CommitId, tree: TreeId) -> AsyncIterator[None]:
    """While the body gates `commit`, the parked steps behind `task` are gated as if it had passed.

    A tree that needs no checks is through at once: the turn of the next step comes before a guess about it would pay.
    """
    if not ctx.options.speculate or not gate.wanted(ctx, task, tree):
        yield
        return
    scout = asyncio.create_task(_scout(ctx, task, commit), name=f"ahead of step {task}")
    try:
        yield
    finally:
        scout.cancel()
        await asyncio.gather(scout, return_exceptions=True)
    if not scout.cancelled():
        scout.result()


async def found(ctx: Context, task: TaskId, commit: CommitId) -> Trial | None:
    """What was found ahead of the step's turn on this very commit; on any other it is discarded."""
    guess = ctx.guesses.get(task)
    if guess is None:
        return None
    if guess.commit != commit:
        await abandon(ctx, task)
        return None
    trial = await guess.work
    del ctx.guesses[task]
    ctx.note(task, ev.SpeculationHeld, commit=commit)
    return trial


async def abandon(ctx: Context, task: TaskId) -> None:
    """The step is refused: what was begun for it, or on the assumption that it passes, is ended and forgotten."""
    doomed = {one for one, guess in ctx.guesses.items() if one == task or task in guess.assumes}
    if doomed:
        at_work = [one for one in doomed if not ctx.guesses[one].work.done()]
        with ExitStack() as stack:
            for one in at_work:  # what their programs do while they are ended is theirs
                stack.enter_context(ctx.flying(one))
            await _end(ctx, doomed)
            await tripwire.look(ctx)
        _forget(ctx, doomed, f"step {task} was not integrated on the assumed head")


@asynccontextmanager
async def none_left(ctx: Context) -> AsyncIterator[None]:
    """However the body ends, nothing that was begun ahead goes on after it."""
    try:
        yield
    finally:
        left = set(ctx.guesses)
        await _end(ctx, left)
        if ctx.journal.broken is None:
            _forget(ctx, left, "the coordinator was stopped")


async def _scout(ctx: Context, task: TaskId, commit: CommitId) -> None:
    """Looks again whenever another step has parked or failed."""
    while True:
        ctx.journal.settled.clear()
        await _look(ctx, task, commit)
        await ctx.journal.settled.wait()


async def _look(ctx: Context, task: TaskId, commit: CommitId) -> None:
    """Begins a guess for each parked step behind `task`, as far as no running step and no bound is in the way."""
    head = commit
    assumed = [task]
    lost: set[int] = set()
    for step in [step for step in ctx.journal.state.ordered() if TaskId(step.task_id).order > task.order]:
        if len(assumed) > ctx.options.speculate or (lost and ctx.plan.on_failure == "stop"):
            return
        after = TaskId(step.task_id)
        if _is_lost(ctx, step, lost):
            lost.add(step.step_idx)
            continue
        if step.state is not State.WAITING_FOR_MERGE:
            return
        merged = await combine.onto(ctx, head, after)
        if isinstance(merged, Failure):
            lost.add(step.step_idx)
            continue
        if after not in ctx.guesses:
            await _guess(ctx, after, head, merged, tuple(assumed))
        assumed.append(after)
        head = merged


def _is_lost(ctx: Context, step: StepState, lost: Collection[int]) -> bool:
    """Whether the step has failed already or will be refused: the head does not move at its turn."""
    if step.state in (State.FAILED, State.CLOSED) or delegate.exhausted(ctx, TaskId(step.task_id)):
        return True
    needs = ctx.schedule.closure(step.step_idx)
    return any(need in lost or ctx.step(ctx.task(need)).final_status == "failed" for need in needs)


async def _guess(ctx: Context, task: TaskId, head: CommitId, commit: CommitId, assumed: tuple[TaskId, ...]) -> None:
    """A step in whose guess a coordinator died is left to its turn: its checks may be the cause, and that is counted."""
    tree = await ctx.offload(ctx.parts.vcs.tree_of, commit)
    if gate.wanted(ctx, task, tree) and not _announced(ctx, task):
        intent = ctx.fact(task, ev.GateSpeculated, head=head, commit=commit, tree=tree, assumes=list(assumed))
        work = asyncio.create_task(_try(ctx, task, commit, intent), name=f"gate of step {task}, ahead")
        ctx.guesses[task] = Guess(assumed, commit, work)


async def _try(ctx: Context, task: TaskId, commit: CommitId, intent: ev.Fact) -> Trial:
    async with ctx.gates:
        ctx.journal.append(intent)
        with ctx.flying(task):
            trial = await gate.trial(ctx, task, commit, f"{ev.AHEAD}-{commit[:12]}")
            await tripwire.look(ctx)
        return trial


async def _end(ctx: Context, tasks: Collection[TaskId]) -> None:
    """Their programs are gone and their workspaces removed when this returns."""
    works = [ctx.guesses[task].work for task in tasks]
    for work in works:
        work.cancel()
    await asyncio.gather(*works, return_exceptions=True)


def _forget(ctx: Context, tasks: Collection[TaskId], why: str) -> None:
    facts: list[ev.Fact] = []
    for task in sorted(tasks, key=lambda one: one.order):
        guess = ctx.guesses.pop(task)
        if _announced(ctx, task):
            facts.append(ctx.fact(task, ev.SpeculationDiscarded, commit=guess.commit, why=why))
    if facts:
        ctx.journal.append(*facts)


def _announced(ctx: Context, task: TaskId) -> bool:
    """Whether the log has a guess about this step with no end to it."""
    facts = ctx.journal.facts(task)
    ended = sum(isinstance(fact, ev.SpeculationHeld | ev.SpeculationDiscarded) for fact in facts)
    return sum(isinstance(fact, ev.GateSpeculated) for fact in facts) > ended
