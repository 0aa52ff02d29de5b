"""A race: several candidates for one attempt, each in its own workspace, judged alike; the best is taken, none is lost.

The first runs on the slot that the step has anyway; others start as slots are free and while money is left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from harness.engine import failpoints, keep, workspaces
from harness.engine.context import Context
from harness.model import events as ev
from harness.model import usage
from harness.model.changes import Snapshot, Workspace
from harness.model.ids import TaskId, candidate_branches
from harness.model.late import dataclass
from harness.model.verdict import Failure


@dataclass(frozen=True, slots=True)
class Judged:
    """One candidate's result."""

    number: int
    agent: str
    workspace: Workspace
    taken: Snapshot | None
    failure: Failure | None
    usage: Mapping[str, Any]


@dataclass(slots=True)
class Race:
    """One attempt's race; `contend` does and judges one candidate's work in the workspace that it is given."""

    ctx: Context
    task: TaskId
    attempt: int
    agents: Sequence[str]
    first: Workspace
    contend: Callable[[int, str, Workspace], Awaitable[Judged]]
    entered: dict[int, Workspace] = field(default_factory=dict)
    judged: list[Judged] = field(default_factory=list)
    waiting: deque[tuple[int, str]] = field(default_factory=deque)

    async def run(self) -> Judged:
        """The best candidate. Cancelled, it keeps what every candidate has done and goes on cancelling."""
        self.waiting.extend(enumerate(self.agents, 1))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._lane(group))
            return await self._choose()
        except asyncio.CancelledError:
            await self._keep_interrupted()
            raise
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from several

    async def _lane(self, group: asyncio.TaskGroup) -> None:
        """One candidate after the other; beside it goes another lane for each slot that is free."""
        while self.waiting and self._may_start():
            number, agent = self.waiting.popleft()
            if self.waiting and not self.ctx.slots.locked():
                await self.ctx.slots.acquire()
                # Not in the lane itself: one that is cancelled before it begins would never give its slot back.
                group.create_task(self._lane(group)).add_done_callback(lambda _: self.ctx.slots.release())
            await self._try(number, agent)

    def _may_start(self) -> bool:
        """The first of an attempt always; the others while what was told of the step's cost is within its budget."""
        budget = self.ctx.contract(self.task).work.budget_usd
        if budget is None or self.waiting[0][0] == 1:
            return True
        told = [fact.usage for fact in self.ctx.journal.facts(self.task) if isinstance(fact, ev.CandidateJudged)]
        return usage.spent(told) < budget

    async def _try(self, number: int, agent: str) -> None:
        ctx, task = self.ctx, self.task
        workspace = self.first if number == 1 else await workspaces.for_attempt(ctx, task, self.attempt, number)
        self.entered[number] = workspace
        about = {"attempt": self.attempt, "candidate": number, "agent": agent}
        ctx.note(task, ev.CandidateStarted, **about, workspace=str(workspace.path))
        done = await self.contend(number, agent, workspace)
        ctx.note(
            task,
            ev.CandidateJudged,
            **about,
            ok=done.failure is None,
            reason=done.failure and done.failure.reason,
            message=done.failure.message if done.failure else "",
            commit=done.taken and done.taken.commit,
            tree=done.taken and done.taken.tree,
            lines=await self._lines(done),
            failed_checks=len([fact for fact in self._checks(done) if not fact.ok]),
            usage=dict(done.usage),
        )
        self.judged.append(done)

    async def _lines(self, done: Judged) -> int:
        if done.taken is None:
            return 0
        return await self.ctx.offload(self.ctx.parts.vcs.diff_lines, done.workspace.start, done.taken.commit)

    def _checks(self, done: Judged) -> list[ev.CheckFinished]:
        facts = [fact for fact in self.ctx.journal.facts(self.task) if isinstance(fact, ev.CheckFinished)]
        return [fact for fact in facts if done.taken and fact.where == "workspace" and fact.tree == done.taken.tree]

    async def _choose(self) -> Judged:
        """The best comes last in the log, so that it is what the step stands for; everything else is kept before."""
        ctx, task = self.ctx, self.task
        verdicts = {
            fact.candidate: fact
            for fact in ctx.journal.facts(task)
            if isinstance(fact, ev.CandidateJudged) and fact.attempt == self.attempt
        }
        best = min(self.judged, key=lambda done: _rank(done, verdicts[done.number], checked=bool(self._checks(done))))
        for other in sorted(self.judged, key=lambda done: done.number):
            if other is not best:
                await self._set_aside(other)
        failpoints.hit("before:choice")
        chosen = ctx.fact(
            task,
            ev.CandidateChosen,
            attempt=self.attempt,
            candidate=best.number,
            agent=best.agent,
            judged=len(self.judged),
            not_started=len(self.waiting),
        )
        ctx.journal.append(chosen)
        if best.taken is not None:
            keep.note(ctx, task, self.attempt, best.taken)
            await keep.point(ctx, ctx.branch(task), best.taken.commit)
            if best.failure is not None:
                await keep.work(ctx, task, self.attempt, best.taken, best.failure.reason, candidate=best.number)
        failpoints.hit("after:choice")
        return best

    async def _set_aside(self, done: Judged) -> None:
        why = "another candidate was taken" if done.failure is None else done.failure.reason
        if done.taken is not None:
            await keep.work(self.ctx, self.task, self.attempt, done.taken, why, candidate=done.number)
        if not self.ctx.options.keep:
            self.ctx.journal.append(await workspaces.remove(self.ctx, self.task, done.workspace.path))

    async def _keep_interrupted(self) -> None:
        for number, workspace in sorted(self.entered.items()):
            await keep.interrupted(self.ctx, self.task, self.attempt, workspace, candidate=number)


def _rank(done: Judged, verdict: ev.CandidateJudged, *, checked: bool) -> tuple[int, ...]:
    """Smaller is better: ready, then how far it came, failed checks, size of the diff, order in the plan."""
    came = 0 if done.failure is None or checked else 1 if done.taken is not None and done.taken.changes else 2
    return (done.failure is not None, came, verdict.failed_checks, verdict.lines, done.number)


def candidate_of(ctx: Context, task: TaskId, path: str) -> int | None:
    """Which candidate worked in a workspace, as the log says; None when it was no race."""
    facts = [fact for fact in ctx.journal.facts(task) if isinstance(fact, ev.CandidateStarted)]
    return next((fact.candidate for fact in facts if fact.workspace == path), None)


async def sweep(ctx: Context, task: TaskId) -> None:
    """Removes the branches of candidates; their work is kept by now."""
    found = await ctx.offload(ctx.parts.vcs.refs_under, candidate_branches(ctx.run_id, task))
    for branch, at in found.items():
        failpoints.hit("before:branch_removal")
        await ctx.offload(ctx.parts.vcs.delete_ref, branch, at)
        failpoints.hit("after:branch_removal")
