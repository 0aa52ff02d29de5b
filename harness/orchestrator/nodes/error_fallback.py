"""error_fallback: what happens after a failed attempt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from harness.engine import delegate, integrate
from harness.engine.context import Context
from harness.model import events as ev
from harness.model.ids import TaskId
from harness.model.lifecycle import State
from harness.orchestrator import error_policy
from harness.orchestrator.crew import Crew
from harness.orchestrator.nodes.contract import contract, task_of
from harness.orchestrator.steady import SteadyClock
from harness.supervisor import ModularNode, NodeContract, NodeInputs, NodeOutputs


class ErrorFallback(ModularNode):
    CONTRACT: ClassVar[NodeContract] = contract(
        "error_fallback", "Retry a failed task after a pause, or mark it failed.", "ctx", "crew", "clock"
    )
    ctx: Context
    crew: Crew
    clock: SteadyClock

    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:  # noqa: ARG002 - the base's signature
        task = task_of(inputs)
        self.crew.start(task, self._fall_back(task))
        return NodeOutputs()

    async def _fall_back(self, task: TaskId) -> None:
        step = self.ctx.step(task)
        if step.state is State.RUNNING:
            failure = error_policy.last_failure(step)
            if not error_policy.final(failure, step, self.ctx.contract(task).execution.max_retries):
                self._schedule(task, error_policy.pause_ms(failure, step, self.ctx.options.backoff_base_ms))
                return
            delegate.fail(self.ctx, task, failure)
        await integrate.close(self.ctx, task)

    def _schedule(self, task: TaskId, pause_ms: int) -> None:
        step = self.ctx.step(task)
        due = self.clock.now() + timedelta(milliseconds=pause_ms)
        self.ctx.journal.append(
            ev.TaskRetryScheduled(
                task=task,
                error=step.last_reason or "",
                fail_count=step.failed_attempts,
                pause_ms=pause_ms,
                next_attempt_at=due.isoformat(),
            )
        )
