"""classifier: whether the goal needs another plan when all tasks of this one are closed."""

from __future__ import annotations

from typing import Any, ClassVar

from harness.engine.context import Context
from harness.model import events as ev
from harness.model import limits
from harness.orchestrator import ended, mind
from harness.orchestrator.nodes.contract import contract
from harness.orchestrator.thinking import classify
from harness.supervisor import ModularNode, NodeContract, NodeInputs, NodeOutputs


class Classifier(ModularNode):
    CONTRACT: ClassVar[NodeContract] = contract("classifier", "Decide whether more work is needed.", "ctx")
    ctx: Context

    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:  # noqa: ARG002 - the base's signature
        state = self.ctx.journal.state
        found = await classify.classify(
            mind.asking(self.ctx, None),
            state.goal,
            ended.of(self.ctx),
            partial=state.partial,
            rounds_left=limits.PLANNING_ROUNDS - len(state.rounds),
        )
        self.ctx.journal.append(
            ev.WorkClassified(more_work=found.more_work, reasons=list(found.reasons), missing=found.missing)
        )
        return NodeOutputs()
