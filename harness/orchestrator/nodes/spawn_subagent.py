"""spawn_subAgent: a complex or failed task becomes the parent of a nested run; its plan is a fact before anything starts."""

from __future__ import annotations

from typing import Any, ClassVar

from harness.engine import combine, delegate, integrate
from harness.engine.context import Context
from harness.errors import EnvironmentProblem, ModelFailed, ModelFault, OrchestrixError, PlanningFailed
from harness.model import events as ev
from harness.model import nesting
from harness.model.ids import CommitId, TaskId
from harness.model.lifecycle import State
from harness.model.verdict import Failure, Reason
from harness.orchestrator import delegated, mind, personas, recovery
from harness.orchestrator.crew import Crew
from harness.orchestrator.nodes.contract import contract, task_of
from harness.supervisor import ModularNode, NodeContract, NodeInputs, NodeOutputs


class SpawnSubAgent(ModularNode):
    CONTRACT: ClassVar[NodeContract] = contract(
        "spawn_subAgent", "Make a task the parent of a nested run of its own.", "ctx", "crew"
    )
    ctx: Context
    crew: Crew

    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:  # noqa: ARG002 - the base's signature
        task = task_of(inputs)
        self.crew.start(task, self._spawn(task))
        return NodeOutputs()

    async def _spawn(self, task: TaskId) -> None:
        ctx = self.ctx
        if ctx.step(task).state is State.CREATED:
            start = await combine.start_point(ctx, task, ctx.schedule.closure(ctx.step(task).step_idx))
            if isinstance(start, Failure):
                await self._fail(task, start)
                return
            ctx.note(task, ev.SubagentStarted, start_point=start, branch=ctx.branch(task))
        try:
            plan = await self._plan(task)
        except (PlanningFailed, ModelFailed, EnvironmentProblem) as error:
            said = f"step {task} could not be split: {error.message}"
            await self._fail(task, Failure(_reason(error), said, hint=error.hint))
            return
        step = ctx.step(task)
        ctx.journal.append(
            ev.SubagentSpawned(
                task=task,
                subagent_id=f"{task}.1",
                parent_task_id=task,
                tasks_count=len(plan["steps"]),
                child_run=nesting.run_id(ctx.run_id, task, step.spawns + 1 + self._earlier(task)),
                persona=personas.RECOVERY if step.recovering else personas.SUBAGENT,
                plan=plan,
            )
        )

    def _earlier(self, task: TaskId) -> int:
        """Spawns of the sub-agents that this one replaces: their runs keep their names."""
        return sum(old.spawns for old in self.ctx.journal.state.superseded if old.task_id == task)

    async def _plan(self, task: TaskId) -> dict[str, Any]:
        """The failed step once more, what its agent asked for, the plan's own steps, or what a model makes of it."""
        ctx, terms = self.ctx, self.ctx.contract(task)
        if ctx.step(task).recovering:
            return recovery.plan(terms, ctx.step(task))
        if ctx.step(task).child_plan:
            return delegated.plan(dict(ctx.step(task).child_plan), terms)
        if terms.work.subplan is not None:
            return dict(terms.work.subplan)
        asking = mind.asking(ctx, task)
        if asking is None:
            raise EnvironmentProblem("no model is configured", hint="give the step its `steps`, or configure a model")
        from harness.orchestrator.thinking import bounds, planner  # noqa: PLC0415 - a run without a model pays nothing

        start = CommitId(ctx.step(task).start_point or "")
        repository = await ctx.offload(mind.survey, ctx.parts.vcs, start)
        within = bounds.of_step(terms, [terms.work.agent], depth=ctx.depth + 1)
        planned = await planner.decompose(asking, terms, within, repository=repository)
        return planned.loaded.plan.model_dump(mode="json", by_alias=True, exclude_unset=True)

    async def _fail(self, task: TaskId, failure: Failure) -> None:
        delegate.fail(self.ctx, task, failure)
        await integrate.close(self.ctx, task)


def _reason(error: OrchestrixError) -> Reason:
    """A plan or an answer that cannot be used is the model's, or its agent's, bad response; anything else is a failure."""
    bad = error.kind is ModelFault.BAD_RESPONSE if isinstance(error, ModelFailed) else isinstance(error, PlanningFailed)
    return Reason.BAD_RESPONSE if bad else Reason.AGENT_FAILED
