"""task_executor: one attempt at one task."""

from __future__ import annotations

from typing import Any, ClassVar

from harness.engine import delegate, integrate
from harness.engine.context import Context
from harness.model.ids import TaskId
from harness.model.lifecycle import State
from harness.orchestrator.crew import Crew
from harness.orchestrator.nodes.contract import contract, task_of
from harness.supervisor import ModularNode, NodeContract, NodeInputs, NodeOutputs


class TaskExecutor(ModularNode):
    """Leaves the attempt with the crew; the router hears of its end from the log."""

    CONTRACT: ClassVar[NodeContract] = contract(
        "task_executor", "Execute one attempt at a task in its workspace.", "ctx", "crew"
    )
    ctx: Context
    crew: Crew

    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:  # noqa: ARG002 - the base's signature
        task = task_of(inputs)
        self.crew.start(task, self._attempt(task))
        return NodeOutputs()

    async def _attempt(self, task: TaskId) -> None:
        if self.ctx.step(task).state in (State.CREATED, State.RUNNING):
            async with self.ctx.slots:
                await delegate.try_once(self.ctx, task, self.ctx.schedule.closure(self.ctx.step(task).step_idx))
        if self.ctx.step(task).state is State.FAILED:
            await integrate.close(self.ctx, task)
