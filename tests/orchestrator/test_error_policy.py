"""The map from errors to actions: conservative where it says nothing, bounded whatever it says."""

from __future__ import annotations

import pytest
from orchestrator.boards import step

from harness.model import error_actions, limits
from harness.model.error_actions import REASONS, Action
from harness.model.verdict import Failure, Reason
from harness.orchestrator import error_policy


def failed(reason: Reason, count: int = 1, **fields):
    return step(0, last_reason=reason, failed_attempts=count, **fields)


@pytest.mark.parametrize("reason", REASONS)
def test_without_an_entry_what_may_help_is_retried_and_all_else_has_failed(reason):
    """Within the retries of the contract; none are left, it has failed."""
    expected = Action.RETRY if Failure(reason, "").retryable else Action.MARK_FAILED
    assert error_policy.after_attempt(failed(reason), 1, {}) is expected
    if reason is not Reason.RATE_LIMITED:
        assert error_policy.after_attempt(failed(reason, 2), 1, {}) is Action.MARK_FAILED


def test_a_rate_limit_pauses_without_using_up_a_retry_but_not_for_ever():
    """It has a count of its own."""
    paused = failed(Reason.RATE_LIMITED, 0, pauses=limits.RATE_LIMIT_PAUSES)
    assert error_policy.after_attempt(paused, 0, {}) is Action.RETRY
    assert error_policy.after_attempt(failed(Reason.RATE_LIMITED, 0, pauses=51), 0, {}) is Action.MARK_FAILED


@pytest.mark.parametrize("action", [Action.ESCALATE, Action.SPAWN_RECOVERY])
def test_retries_come_before_a_person_or_a_recovery(action):
    """The contract's retries first; a rejected task gets neither."""
    actions = {"timeout": action.value}
    assert error_policy.after_attempt(failed(Reason.TIMEOUT), 1, actions) is Action.RETRY
    assert error_policy.after_attempt(failed(Reason.TIMEOUT, 2), 1, actions) is action
    assert error_policy.after_attempt(failed(Reason.TIMEOUT, 2, granted=1), 1, actions) is Action.RETRY
    assert error_policy.after_attempt(failed(Reason.TIMEOUT, 2, rejected=True), 1, actions) is Action.MARK_FAILED


def test_mark_failed_means_no_retry():
    """Even where the contract allows some."""
    assert error_policy.after_attempt(failed(Reason.TIMEOUT), 5, {"timeout": "mark_failed"}) is Action.MARK_FAILED


def test_a_refused_integration_is_the_childs_failure_unless_the_map_says_otherwise():
    """Done again at least once where `retry` is written, and no more often than the contract's retries."""
    refused = failed(Reason.MERGE_CONFLICT, 0, refused=True)
    retry = {"merge_conflict": "retry"}
    assert error_policy.after_refusal(refused, 0, 0, {}) is Action.MARK_FAILED
    assert [error_policy.after_refusal(refused, earlier, 0, retry) for earlier in (0, 1)] == ["retry", "mark_failed"]
    assert [error_policy.after_refusal(refused, earlier, 2, retry) for earlier in (1, 2)] == ["retry", "mark_failed"]


def test_names_are_those_of_the_close_reasons_and_of_the_specification():
    """Spelled either way; unknown names and actions are refused."""
    given = {"Timeout": "retry", "RateLimit": "escalate", "PermissionError": "mark_failed", "merge_conflict": "retry"}
    assert error_actions.parse(given) == {
        "timeout": "retry",
        "rate_limited": "escalate",
        "tool_denied": "mark_failed",
        "merge_conflict": "retry",
    }
    again = error_actions.parse({"BadResponse": "escalate", "AgentFailed": "retry", "TimeoutError": "mark_failed"})
    assert again == {"bad_response": "escalate", "agent_failed": "retry", "timeout": "mark_failed"}
    for wrong in ({"Stopped": "retry"}, {"Timeout": "ignore"}, {"nothing": "retry"}, ["Timeout"]):
        with pytest.raises(ValueError, match=r"known|table"):
            error_actions.parse(wrong)


def test_a_recovery_is_not_recovered():
    """Its failure is the end of the task."""
    again = failed(Reason.NESTED_FAILED, 2, recovering=True)
    assert error_policy.after_attempt(again, 0, {"nested_failed": "spawn_recovery"}) is Action.MARK_FAILED
