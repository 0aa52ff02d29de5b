"""finalizer: the end of the run, when every task is closed."""

from __future__ import annotations

from typing import Any, ClassVar

from harness.engine import finish
from harness.engine.context import Context
from harness.orchestrator.nodes.contract import contract
from harness.supervisor import ModularNode, NodeContract, NodeInputs, NodeOutputs


class Finalizer(ModularNode):
    CONTRACT: ClassVar[NodeContract] = contract(
        "finalizer", "Write the summary and give the run its outcome.", "ctx", is_terminal=True
    )
    ctx: Context

    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:  # noqa: ARG002 - the base's signature
        await finish.finish(self.ctx)
        return NodeOutputs()
