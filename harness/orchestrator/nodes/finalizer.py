"""finalizer: the end of the run, when every task is closed, and the one answer that sums it up."""

from __future__ import annotations

from typing import Any, ClassVar

from harness.engine import finish
from harness.engine.context import Context
from harness.orchestrator import ended, mind
from harness.orchestrator.nodes.contract import contract
from harness.orchestrator.policies import Policies
from harness.orchestrator.thinking import synthesis
from harness.supervisor import ModularNode, NodeContract, NodeInputs, NodeOutputs


class Finalizer(ModularNode):
    CONTRACT: ClassVar[NodeContract] = contract(
        "finalizer",
        "Write the answer and the summary, and give the run its outcome.",
        "ctx",
        "policies",
        is_terminal=True,
    )
    ctx: Context
    policies: Policies

    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:  # noqa: ARG002 - the base's signature
        await finish.finish(self.ctx, await self._response())
        return NodeOutputs()

    async def _response(self) -> str:
        """A plan was given by somebody who knows what it is for; a goal is answered."""
        if not self.policies.plans:
            return ""
        made = await synthesis.synthesise(mind.asking(self.ctx, None), self.ctx.journal.state.goal, ended.of(self.ctx))
        return made.text
