"""The contract binds every call."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import ContractViolation, ToolFailed
from harness.model.process import Ending
from harness.tools.table import TOOLS


@pytest.mark.parametrize("tool", TOOLS)
def test_an_empty_allowlist_allows_nothing(desk, tool) -> None:
    """No tool is harmless enough to be implied."""
    desk.tools = ()
    with pytest.raises(ContractViolation) as caught:
        desk.call(tool, path="a")
    message = f"step 2 may not use the tool {tool}"
    assert (caught.value.message, caught.value.hint) == (message, "its contract allows: none; see `allowed_tools`")
    assert desk.told == [(tool, {"path": "a"}, False, False, message)]


@pytest.mark.parametrize("allowed", ["WRITE_FILE", "write_files", "write", "*", "write_*"])
def test_names_are_exact(desk, allowed) -> None:
    """Neither case nor a pattern widens a permission."""
    desk.tools = (allowed,)
    with pytest.raises(ContractViolation):
        desk.call("write_file", path="a", content="x")
    assert desk.files() == {}


@pytest.mark.parametrize("tool", ["mcp:anything", "", "__class__"])
def test_a_tool_that_does_not_exist_is_denied_even_when_listed(desk, tool) -> None:
    """The table is closed."""
    desk.tools = (tool,)
    with pytest.raises(ContractViolation, match="unknown tool"):
        desk.call(tool)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "a"}, "edit_file: old: Field required"),
        ({"path": 3, "old": "x", "new": ""}, "edit_file: path: Input should be a valid string"),
        ({"path": "a", "old": "x", "new": "", "more": 1}, "edit_file: more: Extra inputs are not permitted"),
    ],
)
def test_arguments_are_checked_before_anything_happens(desk, arguments, message) -> None:
    """A wrong argument is a failure of the call, not a denial."""
    with pytest.raises(ToolFailed) as caught:
        desk.call("edit_file", **arguments)
    assert caught.value.message == message
    assert desk.told[0][2:] == (True, False, message)


def test_every_call_is_told_without_its_content(desk) -> None:
    """Content may be long or secret: only its size is recorded."""
    desk.call("write_file", path="a", content="secret")
    desk.call("run", command="x" * 2_000)
    desk.call("run", command=["echo", "a b"])
    assert desk.told == [
        ("write_file", {"path": "a", "content": "<6 characters>"}, True, True, ""),
        ("run", {"command": "x" * 500 + "..."}, True, True, ""),
        ("run", {"command": ["echo", "a b"]}, True, True, ""),
    ]


@pytest.mark.parametrize("permission", ["run", "shell"])
def test_commands_run_through_the_door_as_a_list_or_by_sh(desk, permission) -> None:
    """`shell` is the other name of the permission to run."""
    desk.tools = (permission,)
    assert desk.call("run", command=["make", "a b"]) == "out\n"
    assert desk.call("run", command="make | cat") == "out\n"
    assert desk.executed == [(("make", "a b"), "tool"), (("sh", "-c", "make | cat"), "tool")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exit_code": 3}, "`make`: exit code 3"),
        ({"ending": Ending.TIMEOUT, "exit_code": 137}, "`make`: timeout"),
        ({"ending": Ending.NOT_FOUND, "exit_code": None, "message": "no such program"}, "`make`: no such program"),
    ],
)
def test_a_command_that_does_not_exit_with_zero_has_failed(desk, change, message) -> None:
    """How it ended travels with the error."""
    desk.result = replace(desk.result, **change)
    with pytest.raises(ToolFailed) as caught:
        desk.call("run", command=["make"])
    assert (caught.value.message, caught.value.hint) == (message, "out")
    assert caught.value.details == {"ending": desk.result.ending, "exit_code": desk.result.exit_code}
