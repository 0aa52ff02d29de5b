"""Agents by name."""

from __future__ import annotations

import pytest

from harness.agents.actions import ActionsAgent
from harness.agents.cli import CliAgent
from harness.agents.command import CommandAgent
from harness.agents.registry import Availability, Registry
from harness.errors import EnvironmentProblem


def test_the_table_and_the_settings_give_the_agents() -> None:
    """A program of the settings is a command agent; the table's own names stay what they are."""
    registry = Registry({"robot": ["sh", "-c", "true"], "actions": ["evil"]})
    assert registry.names[:2] == ("actions", "command")
    assert {"robot", "claude", "codex"} <= set(registry.names)
    assert isinstance(registry.agent("actions"), ActionsAgent)
    assert isinstance(registry.agent("robot"), CommandAgent)


def test_an_unknown_agent_is_named_with_those_that_exist() -> None:
    """The message lets a stranger fix the plan."""
    with pytest.raises(EnvironmentProblem) as caught:
        Registry({}).agent("nobody")
    assert caught.value.message == "there is no agent 'nobody'"
    assert caught.value.hint.startswith("the agents are actions, command, aider, claude, ")


def test_a_command_of_the_settings_takes_the_place_of_a_profile() -> None:
    """The user's own word on how a program is started counts."""
    assert isinstance(Registry({}).agent("claude"), CliAgent)
    assert isinstance(Registry({"claude": ["my-claude"]}).agent("claude"), CommandAgent)
    assert Registry({"claude": ["my-claude"]}).profile("claude") is None


def test_availability_is_looked_up_without_starting_anything() -> None:
    """Installed, missing and unknown are told apart."""
    registry = Registry({"here": ["/bin/sh"], "gone": ["no-such-program"]})
    assert [registry.available(name) for name in ("command", "here", "gone", "other")] == [
        Availability("command", "command", usable=True, detail="built in"),
        Availability("here", "command", usable=True, detail="/bin/sh"),
        Availability("gone", "command", usable=False, detail="program 'no-such-program' was not found"),
        Availability("other", "unknown", usable=False, detail="not in the settings"),
    ]
