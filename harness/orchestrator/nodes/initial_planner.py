"""initial_planner: a goal becomes a plan, and the plan and its sub-agents one transaction; never half-started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from harness.engine import create
from harness.engine.context import Context
from harness.errors import EnvironmentProblem, ModelFailed, OrchestrixError, PlanningFailed
from harness.model import events as ev
from harness.model.ids import CommitId
from harness.model.plan import Plan
from harness.orchestrator import mind
from harness.orchestrator.nodes.contract import contract
from harness.supervisor import ModularNode, NodeContract, NodeInputs, NodeOutputs

if TYPE_CHECKING:
    from harness.orchestrator.thinking.bounds import Bounds


class InitialPlanner(ModularNode):
    """Without a valid plan the run waits: nothing was started, and a resume asks again."""

    CONTRACT: ClassVar[NodeContract] = contract("initial_planner", "Decompose the goal into tasks.", "ctx")
    ctx: Context

    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:  # noqa: ARG002 - the base's signature
        state = self.ctx.journal.state
        asking = mind.asking(self.ctx, None)
        if asking is None:
            raise EnvironmentProblem(
                "no language model is configured",
                hint="set ORCHESTRIX_MODEL to openai:NAME, anthropic:NAME or scripted:FILE, then resume",
            )
        from harness.orchestrator.thinking import planner  # noqa: PLC0415 - most runs begin with a plan

        repository = await self.ctx.offload(mind.survey, self.ctx.parts.vcs, CommitId(state.head))
        context = state.missing or str(self.ctx.options.planning.get("context", ""))
        try:
            planned = await planner.plan(asking, state.goal, self._bounds(), repository=repository, context=context)
        except (PlanningFailed, ModelFailed) as error:
            self._wait(error)
        else:
            self._adopt(planned.loaded.plan, partial=planned.partial)
        return NodeOutputs()

    def _bounds(self) -> Bounds:
        from harness.orchestrator.thinking.bounds import Bounds  # noqa: PLC0415 - as above

        terms = self.ctx.options.planning
        return Bounds(
            agents=tuple(terms["agents"]),
            tools=tuple(terms["tools"]),
            checks=tuple(terms["checks"]),
            max_steps=int(terms["max_steps"]),
            timeout_ms=terms.get("timeout_ms"),
            retries=terms.get("retries"),
        )

    def _adopt(self, plan: Plan, *, partial: bool) -> None:
        """Steps of a later round stand on all that is integrated by now."""
        ctx, state = self.ctx, self.ctx.journal.state
        first, origin = len(state.steps), state.head if state.rounds else None
        data = plan.model_dump(mode="json", by_alias=True, exclude_unset=True)
        created = [
            create.subagent(
                plan,
                ctx.run_id,
                idx,
                ctx.options.sandbox,
                origin=origin,
                shift=first,
                personas=ctx.options.personas,
            )
            for idx in range(len(plan.steps))
        ]
        ctx.journal.append(ev.PlanAdopted(plan=data, partial=partial, round=len(state.rounds) + 1), *created)
        ctx.adopt_plan()

    def _wait(self, error: OrchestrixError) -> None:
        self.ctx.journal.append(ev.RunWaiting(cause="planning", message=error.message, tasks=[]))
