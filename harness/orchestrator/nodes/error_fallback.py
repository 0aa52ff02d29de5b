"""error_fallback: what happens after a failed attempt, or to work that cannot be integrated, by the map of actions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from harness.engine import create, delegate, integrate
from harness.engine.context import Context
from harness.model import events as ev
from harness.model.error_actions import Action
from harness.model.ids import TaskId
from harness.model.lifecycle import State
from harness.model.state import StepState
from harness.orchestrator import error_policy
from harness.orchestrator.crew import Crew
from harness.orchestrator.nodes.contract import contract, task_of
from harness.orchestrator.steady import SteadyClock
from harness.supervisor import ModularNode, NodeContract, NodeInputs, NodeOutputs


class ErrorFallback(ModularNode):
    """Every branch ends in a fact that gives the task back to the router, or closes it."""

    CONTRACT: ClassVar[NodeContract] = contract(
        "error_fallback", "Retry, recover, escalate or mark failed, by policy.", "ctx", "crew", "clock"
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
        if step.refused:
            await self._refused(task, step)
            return
        action = Action.MARK_FAILED
        if step.state is State.RUNNING:
            retries = self.ctx.contract(task).execution.max_retries
            action = error_policy.after_attempt(step, retries, self.ctx.options.errors)
            if action is Action.SPAWN_RECOVERY and self.ctx.options.replay:
                action = Action.RETRY  # what the recovery made is the next recorded attempt
        if action is Action.RETRY:
            self._schedule(task, step)
        elif action is Action.ESCALATE:
            self._escalate(task, step)
        elif action is Action.SPAWN_RECOVERY:
            self._recover(task, step)
        else:
            if step.state is State.RUNNING:
                delegate.fail(self.ctx, task, error_policy.last_failure(step))
            await integrate.close(self.ctx, task)

    async def _refused(self, task: TaskId, step: StepState) -> None:
        earlier = [other for other in self.ctx.journal.state.superseded if other.task_id == task]
        retries = self.ctx.contract(task).execution.max_retries
        action = error_policy.after_refusal(step, len(earlier), retries, self.ctx.options.errors)
        if action is Action.ESCALATE and step.state is State.WAITING_FOR_MERGE:
            self._escalate(task, step)
            return
        if step.state is State.WAITING_FOR_MERGE:
            await integrate.refuse(self.ctx, task, error_policy.last_failure(step))
        again = [self._successor(step, len(earlier))] if action is Action.RETRY else []
        await integrate.close(self.ctx, task, *again)

    def _successor(self, step: StepState, earlier: int) -> ev.SubagentCreated:
        """The step again, on what is integrated by now; logged with the end of the one that it replaces."""
        ctx = self.ctx
        return create.subagent(
            ctx.plan,
            ctx.run_id,
            step.step_idx,
            ctx.options.sandbox,
            generation=2 + earlier,
            origin=ctx.journal.state.head,
            nest=ctx.nest,
            personas=ctx.options.personas,
        )

    def _schedule(self, task: TaskId, step: StepState) -> None:
        pause = error_policy.pause_ms(error_policy.last_failure(step), step, self.ctx.options.backoff_base_ms)
        due = self.clock.now() + timedelta(milliseconds=pause)
        self.ctx.journal.append(
            ev.TaskRetryScheduled(
                task=task,
                error=step.last_reason or "",
                fail_count=step.failed_attempts,
                pause_ms=pause,
                next_attempt_at=due.isoformat(),
            )
        )

    def _recover(self, task: TaskId, step: StepState) -> None:
        self.ctx.journal.append(
            ev.ComplexityAnalyzed(
                task=task, decision="spawn", reasons=[f"recovery from {step.last_reason}"], recovery=True
            )
        )

    def _escalate(self, task: TaskId, step: StepState) -> None:
        self.ctx.journal.append(ev.TaskEscalated(task=task, error=step.last_reason or "", message=step.message or ""))
