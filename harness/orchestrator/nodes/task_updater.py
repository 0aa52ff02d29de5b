"""task_updater: applies a task's result to the run, and closes the task."""

from __future__ import annotations

from typing import Any, ClassVar

from harness.engine import integrate
from harness.engine.context import Context
from harness.model import events as ev
from harness.model.error_actions import Action
from harness.model.ids import TaskId
from harness.model.lifecycle import State
from harness.model.verdict import Failure
from harness.orchestrator import abandonment
from harness.orchestrator.board import Boards
from harness.orchestrator.crew import Crew
from harness.orchestrator.nodes.contract import contract, task_of
from harness.orchestrator.policies import Policies
from harness.supervisor import ModularNode, NodeContract, NodeInputs, NodeOutputs


class TaskUpdater(ModularNode):
    CONTRACT: ClassVar[NodeContract] = contract(
        "task_updater",
        "Integrate a parked result in plan order and close the task.",
        "ctx",
        "crew",
        "policies",
        "boards",
    )
    ctx: Context
    crew: Crew
    policies: Policies
    boards: Boards

    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:  # noqa: ARG002 - the base's signature
        task = task_of(inputs)
        self.crew.start(task, self._update(task))
        return NodeOutputs()

    async def _update(self, task: TaskId) -> None:
        if self.ctx.step(task).state is State.WAITING_FOR_MERGE:
            failure = await self._integrate(task)
            if failure is not None and self._has_policy(failure):
                self.ctx.note(
                    task,
                    ev.IntegrationRefused,
                    reason=failure.reason,
                    message=failure.message,
                    paths=list(failure.paths),
                )
                return
            if failure is not None:
                await integrate.refuse(self.ctx, task, failure)
        await integrate.close(self.ctx, task)

    async def _integrate(self, task: TaskId) -> Failure | None:
        step = self.ctx.step(task)
        lost = abandonment.of(self.boards.now(self.policies), step)
        return lost or await integrate.integrate(self.ctx, task, self.ctx.schedule.closure(step.step_idx))

    def _has_policy(self, failure: Failure) -> bool:
        """Whether the map says more than that the child failed, which is what a failed integration is by default."""
        return self.ctx.options.errors.get(failure.reason, Action.MARK_FAILED) != Action.MARK_FAILED
