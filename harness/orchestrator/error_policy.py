"""What a failure leads to: pure functions of the failure, the task's history, its contract and the map of actions."""

from __future__ import annotations

from collections.abc import Mapping

from harness.model import limits
from harness.model.error_actions import Action, action_for
from harness.model.state import StepState
from harness.model.verdict import Failure, Reason


def last_failure(step: StepState) -> Failure:
    """Why the last finished attempt failed, or why the parked work cannot be integrated, from the log."""
    reason = Reason(step.last_reason or Reason.AGENT_FAILED)
    return Failure(reason, step.message or "", step.last_paths, retry_after_ms=step.last_retry_ms)


def after_attempt(step: StepState, max_retries: int, actions: Mapping[str, str]) -> Action:
    """Retries come first, as many as the contract and a person allow; then what the map says.

    A rate limit pauses without using up a retry, but not for ever.
    """
    reason = last_failure(step).reason
    action = action_for(actions, reason)
    if step.rejected or action is Action.MARK_FAILED:
        return Action.MARK_FAILED
    if reason is Reason.RATE_LIMITED:
        left = step.pauses <= limits.RATE_LIMIT_PAUSES + step.granted
    else:
        left = step.failed_attempts <= max_retries + step.granted
    if left:
        return Action.RETRY
    again = action is Action.RETRY or (action is Action.SPAWN_RECOVERY and step.recovering)
    return Action.MARK_FAILED if again else action


def after_refusal(step: StepState, earlier: int, max_retries: int, actions: Mapping[str, str]) -> Action:
    """For work that could not be integrated; a retry does the step again on the integration head, `earlier` counts those.

    Asked for by name, it is done once even where the contract allows no retry.
    """
    action = action_for(actions, last_failure(step).reason)
    if step.rejected:
        return Action.MARK_FAILED
    if step.granted:
        return Action.RETRY
    used_up = action is Action.RETRY and earlier >= max(1, max_retries)
    return Action.MARK_FAILED if used_up or action is Action.SPAWN_RECOVERY else action


def pause_ms(failure: Failure, step: StepState, base_ms: int) -> int:
    """How long to wait: what the agent asked for, or base x 2^(fail_count - 1) up to a ceiling."""
    if failure.retry_after_ms is not None:
        return min(failure.retry_after_ms, limits.RATE_LIMIT_CEILING_MS)
    return min(base_ms << max(0, min(step.failed_attempts, 32) - 1), limits.BACKOFF_CEILING_MS)
