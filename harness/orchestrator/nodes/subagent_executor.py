"""subAgent_executor: the nested run of a task, from wherever its own log says it is to its end."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, ClassVar

from harness.engine import create, launch
from harness.engine.context import Context
from harness.errors import NotFound
from harness.model import events as ev
from harness.model import nesting
from harness.model.ids import CommitId, RunId, TaskId
from harness.model.nesting import Nest
from harness.model.personas import capped
from harness.model.plan import Plan
from harness.model.schedule import schedule
from harness.model.state import RunState
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
            known = store.state(child)
        except NotFound:
            create.run(ctx.parts, lease, self._request(task))
        else:
            self._share_budget(lease, known)
        state = await launch.carry_on(ctx.parts, lease, ctx.holder, lambda _fact, _state: None, above=ctx)
        if state.waiting is not None:
            self.crew.waits[task] = state
            return
        spent = state.spent
        ctx.journal.append(
            ev.SubagentReturned(
                task=task,
                child_run=child,
                status=state.status.value,
                head=state.head,
                message=_why(state),
                usage={"tokens": spent.tokens, "cost_usd": spent.cost_usd, "attempts": spent.attempts},
            )
        )

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
