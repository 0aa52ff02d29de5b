"""The plan's own types: strict, frozen, and the same after a round trip."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from harness.model.plan import Plan

FULL = {
    "version": 1,
    "goal": "All of it",
    "base": "main",
    "defaults": {"timeout": "2m", "env": {"A": "1"}},
    "on_failure": "stop",
    "overlap": "allow",
    "ownership_exceptions": True,
    "steps": [
        {
            "id": "one",
            "title": "One",
            "owns": ["a/**"],
            "success_criteria": ["short", {"text": "shown", "check": ["true"]}],
            "checks": ["true", ["true"], {"run": "true", "may_fail_on_base": True}],
            "allowed_tools": [],
            "timeout": 90,
            "inactivity_timeout": "1m30s",
            "retries": 2,
            "env": {"B": "2"},
            "setup": ["true", ["echo", "x"]],
            "actions": [{"write_file": {"path": "a/b", "content": "c"}}, {"run": "true"}],
        },
        {"title": "Two", "needs": ["one"], "command": ["true"], "allow_empty": True},
    ],
}


def test_round_trip_through_json():
    """What the log keeps of a plan reads back as the same plan."""
    plan = Plan.model_validate(FULL)
    kept = plan.model_dump(mode="json", exclude_unset=True, by_alias=True)
    assert Plan.model_validate(kept) == plan


def test_durations_become_milliseconds():
    """Numbers are seconds, text has units."""
    step = Plan.model_validate(FULL).steps[0]
    assert (step.timeout, step.inactivity_timeout) == (90_000, 90_000)


def test_actions_name_their_tool_and_arguments():
    """An action is one tool call."""
    actions = Plan.model_validate(FULL).steps[0].actions
    assert [(action.tool, action.arguments) for action in actions] == [
        ("write_file", {"path": "a/b", "content": "c", "executable": False}),
        ("run", {"command": "true"}),
    ]


def test_a_plan_cannot_be_changed():
    """Values are frozen."""
    plan = Plan.model_validate(FULL)
    with pytest.raises(ValidationError):
        plan.goal = "another"


@pytest.mark.parametrize("timeout", [0, -1, True, "", "soon", "31d", [], {}, float("nan"), float("inf"), "1e3s"])
def test_wrong_durations_are_validation_errors(timeout):
    """No value of any type gets past, or out of, the duration parser except as a placed error."""
    with pytest.raises(ValidationError):
        Plan.model_validate({"steps": [{"title": "a", "timeout": timeout}]})
