"""The delegation contract: the fields of seed 003, persisted whole, refused when missing or unreadable."""

from __future__ import annotations

import json

import pytest

from harness.errors import ContractViolation
from harness.model import contract, limits
from harness.model.contract import Contract
from harness.model.plan import Plan

PLAN = Plan.model_validate(
    {
        "goal": "Reach the goal\n",
        "defaults": {"timeout": "90s", "retries": 1, "env": {"A": "default", "B": "default"}, "checks": ["make check"]},
        "ownership_exceptions": True,
        "steps": [
            {
                "title": "Write",
                "description": "Write it down",
                "owns": ["a/**"],
                "success_criteria": ["It is there", {"text": "It is right", "check": ["test", "-s", "a"]}],
                "env": {"A": "own"},
                "actions": [{"write_file": {"path": "a/b"}}],
            },
            {"title": "Run", "command": ["true"], "timeout": "2m", "retries": 0, "checks": [], "allowed_tools": []},
            {
                "title": "Ask",
                "agent": "claude",
                "setup": "make deps",
                "checks": [{"run": "x", "may_fail_on_base": True}],
            },
        ],
    }
)


def test_the_fields_of_the_seed_are_exact():
    """Section 2 of seed 003, field by field."""
    kept = json.loads(contract.from_plan(PLAN, 0, "run-1").to_json())
    seed = {key: kept[key] for key in ("parent", "step", "permissions", "execution", "outputs")}
    assert seed == {
        "parent": {
            "run_id": "run-1",
            "step_idx": 0,
            "task_prompt": "Reach the goal\n",
            "goal_summary": "Reach the goal",
        },
        "step": {
            "title": "Write",
            "description": "Write it down",
            "success_criteria": ["It is there", "It is right"],
        },
        "permissions": {
            "allowed_tools": list(contract.DEFAULT_TOOLS),
            "can_spawn_children": False,
            "max_delegation_depth": 0,
        },
        "execution": {"attempt_timeout_ms": 90_000, "max_retries": 1, "close_on_completion": True},
        "outputs": {"report_format": "markdown", "report_path_pattern": ".orchestrix/step-<idx>-result.md"},
    }


@pytest.mark.parametrize("idx", range(3))
def test_round_trip(idx):
    """What is persisted reads back as the same contract, byte for byte."""
    made = contract.from_plan(PLAN, idx, "run-1", sandbox="none")
    assert Contract.from_json(made.to_json()) == made
    assert Contract.from_json(made.to_json()).to_json() == made.to_json()


def test_defaults_fill_what_a_step_leaves_open():
    """`env` is merged; everything else is the step's own or the default."""
    first, second, third = (contract.from_plan(PLAN, idx, "run-1") for idx in range(3))
    assert first.work.env == {"A": "own", "B": "default"}
    assert [(check.command, check.criterion) for check in first.checks] == [
        ("make check", None),
        (["test", "-s", "a"], "It is right"),
    ]
    assert (second.execution.attempt_timeout_ms, second.execution.max_retries, second.checks) == (120_000, 0, ())
    assert (third.work.setup, third.checks[0].may_fail_on_base) == (("make deps",), True)


def test_ways_of_working():
    """Actions and commands speak for themselves; otherwise the named agent does it."""
    works = [contract.from_plan(PLAN, idx, "run-1").work for idx in range(3)]
    assert [work.agent for work in works] == ["actions", "command", "claude"]
    assert works[0].actions[0].tool == "write_file"
    assert works[1].command == ("true",)


def test_an_empty_tool_list_allows_nothing():
    """An empty list is not the same as no list."""
    assert contract.from_plan(PLAN, 1, "run-1").permissions.allowed_tools == ()


def test_ownership_and_limits():
    """A step without `owns` owns everything; limits have their named defaults."""
    first, second = contract.from_plan(PLAN, 0, "run-1"), contract.from_plan(PLAN, 1, "run-1")
    assert (first.ownership.paths, first.ownership.exceptions_allowed) == (("a/**",), True)
    assert second.ownership.paths is None
    assert (second.limits.files, second.limits.bytes) == (limits.STEP_FILES, limits.STEP_BYTES)


def test_report_path_names_the_step():
    """The pattern of the seed, filled in."""
    assert contract.from_plan(PLAN, 2, "run-1").report_path == ".orchestrix/step-2-result.md"


@pytest.mark.parametrize("text", [None, "", "{}", "null", "[]", "not json", '{"parent": 1}', "\x00"])
def test_missing_or_unreadable_refuses(text):
    """Nothing runs without a contract that reads back whole."""
    with pytest.raises(ContractViolation) as caught:
        Contract.from_json(text)
    assert caught.value.exit_code == 5


def test_an_unknown_field_refuses():
    """A contract with a field that nobody agreed on is not a contract."""
    kept = json.loads(contract.from_plan(PLAN, 0, "run-1").to_json())
    kept["permissions"]["everything"] = True
    with pytest.raises(ContractViolation):
        Contract.from_json(json.dumps(kept))
