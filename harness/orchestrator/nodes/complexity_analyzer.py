"""complexity_analyzer: whether a task is executed as it is or split first; rules decide, a model only about the rest."""

from __future__ import annotations

from typing import Any, ClassVar

from harness.engine.context import Context
from harness.model import events as ev
from harness.model.ids import TaskId
from harness.orchestrator import mind
from harness.orchestrator.crew import Crew
from harness.orchestrator.nodes.contract import contract, task_of
from harness.orchestrator.thinking import analysis
from harness.supervisor import ModularNode, NodeContract, NodeInputs, NodeOutputs


class ComplexityAnalyzer(ModularNode):
    CONTRACT: ClassVar[NodeContract] = contract(
        "complexity_analyzer", "Decide whether a task is executed or split, with reasons.", "ctx", "crew"
    )
    ctx: Context
    crew: Crew

    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:  # noqa: ARG002 - the base's signature
        task = task_of(inputs)
        self.crew.start(task, self._analyse(task))
        return NodeOutputs()

    async def _analyse(self, task: TaskId) -> None:
        ctx = self.ctx
        terms = ctx.contract(task)
        if ctx.options.replay:
            self._decided(task, analysis.Decision.EXECUTE, ["a recording holds its result"], ())
            return
        if terms.work.subplan is not None:
            self._decided(task, analysis.Decision.SPAWN, ["the plan gives its steps"], ())
            return
        found = await analysis.analyse(
            mind.asking(ctx, task),
            terms,
            terms.work.decompose,
            paths=await ctx.offload(ctx.parts.vcs.paths, ctx.base),
            depth=ctx.depth,
            max_depth=ctx.depth + terms.permissions.max_delegation_depth,
        )
        self._decided(task, found.decision, list(found.reasons), found.recommended_tools)

    def _decided(self, task: TaskId, decision: str, reasons: list[str], tools: tuple[str, ...]) -> None:
        self.ctx.journal.append(
            ev.ComplexityAnalyzed(task=task, decision=decision, reasons=reasons, recommended_tools=list(tools))
        )
