"""The agent that does what the plan lists, through the broker: no model, no surprise."""

from __future__ import annotations

from harness.errors import ContractViolation, ToolFailed
from harness.model.process import Ending
from harness.model.verdict import Failure, Reason
from harness.ports import Execute, Job, Outcome, Tools

_REASONS = {
    Ending.TIMEOUT.value: Reason.TIMEOUT,
    Ending.INACTIVITY.value: Reason.INACTIVITY_TIMEOUT,
    Ending.LIMIT.value: Reason.LIMIT_EXCEEDED,
}


class ActionsAgent:
    """Stops at the first action that is denied or fails."""

    async def perform(self, job: Job, tools: Tools, execute: Execute) -> Outcome:  # noqa: ARG002 - the broker runs programs
        """Does the actions of the contract in order."""
        actions = job.contract.work.actions
        if not actions:
            return Outcome(
                Failure(Reason.CONTRACT_REFUSED, "the contract lists no actions", hint="give the step `actions`")
            )
        for number, action in enumerate(actions):
            try:
                await tools.call(action.tool, action.arguments)
            except ContractViolation as error:
                return Outcome(Failure(Reason.TOOL_DENIED, f"action {number}: {error.message}", hint=error.hint))
            except ToolFailed as error:
                reason = _REASONS.get(error.details.get("ending", ""), Reason.AGENT_FAILED)
                failure = Failure(reason, f"action {number} ({action.tool}): {error.message}", hint=error.hint)
                return Outcome(failure, exit_code=error.details.get("exit_code"))
        return Outcome()
