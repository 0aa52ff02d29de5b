"""task_planner: keeps the remaining tasks true to what has happened: those that stand on a failure are given up."""

from __future__ import annotations

from typing import Any, ClassVar

from harness.engine import delegate, integrate
from harness.engine.context import Context
from harness.model.ids import TaskId
from harness.model.lifecycle import State
from harness.model.verdict import Failure
from harness.orchestrator import abandonment
from harness.orchestrator.board import Boards
from harness.orchestrator.crew import Crew
from harness.orchestrator.nodes.contract import contract, task_of
from harness.orchestrator.policies import Policies
from harness.supervisor import ModularNode, NodeContract, NodeInputs, NodeOutputs


class TaskPlanner(ModularNode):
    """An attempt that is under way is ended first; its work is kept."""

    CONTRACT: ClassVar[NodeContract] = contract(
        "task_planner",
        "Give up a task that cannot go on because another one failed.",
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
        lost = abandonment.of(self.boards.now(self.policies), self.ctx.step(task))
        self.crew.start(task, self._give_up(task, lost))
        return NodeOutputs()

    async def _give_up(self, task: TaskId, lost: Failure | None) -> None:
        if lost is not None and self.ctx.step(task).state in (State.CREATED, State.RUNNING):
            delegate.fail(self.ctx, task, lost)
        await integrate.close(self.ctx, task)
