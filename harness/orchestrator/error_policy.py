"""What a failed attempt leads to: pure functions of the failure, the task's history and the contract."""

from __future__ import annotations

from harness.model import limits
from harness.model.state import StepState
from harness.model.verdict import Failure, Reason


def last_failure(step: StepState) -> Failure:
    """Why the last finished attempt failed, from the log."""
    reason = Reason(step.last_reason or Reason.AGENT_FAILED)
    return Failure(reason, step.message or "", step.last_paths, retry_after_ms=step.last_retry_ms)


def final(failure: Failure, step: StepState, max_retries: int) -> bool:
    """Whether no further attempt may be made; a rate limit pauses without using up a retry, but not for ever."""
    if failure.reason is Reason.RATE_LIMITED:
        return step.pauses > limits.RATE_LIMIT_PAUSES
    return not failure.retryable or step.failed_attempts > max_retries


def pause_ms(failure: Failure, step: StepState, base_ms: int) -> int:
    """How long to wait: what the agent asked for, or base x 2^(fail_count - 1) up to a ceiling."""
    if failure.retry_after_ms is not None:
        return min(failure.retry_after_ms, limits.RATE_LIMIT_CEILING_MS)
    return min(base_ms << max(0, min(step.failed_attempts, 32) - 1), limits.BACKOFF_CEILING_MS)
