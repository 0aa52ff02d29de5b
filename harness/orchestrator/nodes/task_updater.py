"""task_updater: applies a task's result to the run, and closes the task."""

from __future__ import annotations

from typing import Any, ClassVar

from harness.engine import integrate
from harness.engine.context import Context
from harness.model.ids import TaskId
from harness.model.lifecycle import State
from harness.orchestrator import abandonment
from harness.orchestrator.board import Board
from harness.orchestrator.crew import Crew
from harness.orchestrator.nodes.contract import contract, task_of
from harness.orchestrator.policies import Policies
from harness.supervisor import ModularNode, NodeContract, NodeInputs, NodeOutputs


class TaskUpdater(ModularNode):
    CONTRACT: ClassVar[NodeContract] = contract(
        "task_updater", "Integrate a parked result in plan order and close the task.", "ctx", "crew", "policies"
    )
    ctx: Context
    crew: Crew
    policies: Policies

    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:  # noqa: ARG002 - the base's signature
        task = task_of(inputs)
        self.crew.start(task, self._update(task))
        return NodeOutputs()

    async def _update(self, task: TaskId) -> None:
        step = self.ctx.step(task)
        if step.state is State.WAITING_FOR_MERGE:
            lost = abandonment.of(Board.of(self.ctx.journal.state, self.policies), step)
            if lost is not None:
                await integrate.refuse(self.ctx, task, lost)
            else:
                await integrate.integrate(self.ctx, task, self.ctx.schedule.closure(step.step_idx))
        await integrate.close(self.ctx, task)
