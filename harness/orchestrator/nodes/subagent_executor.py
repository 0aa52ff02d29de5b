"""subAgent_executor: the nested run of a task, from wherever its own log says it is to its end."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from typing import Any, ClassVar

from harness.engine import create, ending, launch
from harness.engine.context import Context
from harness.errors import MACHINE_FAULTS, EnvironmentProblem, NotFound, StoreFailed
from harness.model import duration, nesting
from harness.model import events as ev
from harness.model.ids import CommitId, RunId, TaskId
from harness.model.nesting import Nest
from harness.model.personas import capped
from harness.model.plan import Plan
from harness.model.schedule import schedule
from harness.model.state import RunState
from harness.model.verdict import Reason
from harness.orchestrator import personas, recovery
from harness.orchestrator.crew import Crew
from harness.orchestrator.nodes.contract import contract, task_of
from harness.ports import Lease
from harness.supervisor import ModularNode, NodeContract, NodeInputs, NodeOutputs


class SubAgentExecutor(ModularNode):
    """Resumed with its parent, cancelled with it, under a lease of the same process."""

    CONTRACT: ClassVar[NodeContract] = contract(
        "subAgent_executor", "Run the tasks of a nested run one level deeper.", "ctx", "crew"
    )
    ctx: Context
    crew: Crew

    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:  # noqa: ARG002 - the base's signature
        task = task_of(inputs)
        self.crew.start(task, self._run(task))
        return NodeOutputs()

    async def _run(self, task: TaskId) -> None:
        ctx, store = self.ctx, self.ctx.parts.store
        child = RunId(ctx.step(task).child_run or "")
        lease = await ctx.offload(store.acquire, child, dict(ctx.holder))
        try:
            self._share_budget(lease, store.state(child))
        except NotFound:
            create.run(ctx.parts, lease, self._request(task))
        state = await self._carried_on(task, lease)
        if state.waiting is not None:
            self.crew.waits[task] = state
            return
        overdue = Reason.TIMEOUT if state.cancelling == Reason.TIMEOUT else None
        ctx.journal.append(ending.returned(task, state, _why(state), overdue))

    async def _carried_on(self, task: TaskId, lease: Lease) -> RunState:
        """The nested run at its end, or waiting; its parent's time limit and a fault that is its own end it early."""
        ctx, known = self.ctx, self.ctx.parts.store.state(lease.run_id)
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

    def _request(self, task: TaskId) -> create.Request:
        ctx, step = self.ctx, self.ctx.step(task)
        plan = Plan.model_validate(dict(step.child_plan))
        persona, terms = personas.RECOVERY if step.recovering else personas.SUBAGENT, ctx.contract(task)
        within = capped(terms, personas.caps(terms.caps, persona)).model_copy(update={"persona": persona})
        errors = recovery.without(ctx.options.errors) if step.recovering else dict(ctx.options.errors)
        budget = nesting.remaining(ctx.journal.state.budget, ctx.journal.state.spent)
        return create.Request(
            plan=plan,
            schedule=schedule(plan),
            plan_path="",
            plan_digest=hashlib.sha256(ev.canonical(dict(step.child_plan)).encode()).hexdigest(),
            base=CommitId(step.start_point or ""),
            target=None,
            options=replace(ctx.options, errors=errors, budget=budget, planning={}),
            nest=Nest(ctx.run_id, task, within),
        )

    def _share_budget(self, lease: Lease, known: RunState) -> None:
        """A parent that was given more has more to give."""
        state = self.ctx.journal.state
        used = {name: getattr(known.spent, name) for name in state.budget}
        left = nesting.remaining(state.budget, state.spent)
        shared = {name: left[name] + used[name] for name in left if name != "wall_ms"}
        if any(known.budget.get(name) != amount for name, amount in shared.items()):
            self.ctx.parts.store.append(lease, [ev.BudgetChanged(budget=shared)])


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
