"""subAGENT_finalizer: what a nested run integrated becomes its parent's result, or its parent's failure."""

from __future__ import annotations

from typing import Any, ClassVar

from harness.engine import adopt
from harness.engine.context import Context
from harness.orchestrator.crew import Crew
from harness.orchestrator.nodes.contract import contract, task_of
from harness.supervisor import ModularNode, NodeContract, NodeInputs, NodeOutputs


class SubAgentFinalizer(ModularNode):
    CONTRACT: ClassVar[NodeContract] = contract(
        "subAGENT_finalizer", "Judge the result of a nested run and park it as its parent's.", "ctx", "crew"
    )
    ctx: Context
    crew: Crew

    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:  # noqa: ARG002 - the base's signature
        task = task_of(inputs)
        self.crew.start(task, adopt.adopt(self.ctx, task))
        return NodeOutputs()
