"""`orchestrix tools`: the names of seed 004, from Python and from the command line."""

from __future__ import annotations

import json

import pytest
from support.workbench import Workbench

from harness.errors import NotFound
from harness.tools import get_tool_argument_schema, list_allowed_directories
from harness.tools.table import TOOLS


def test_every_tool_is_listed_with_its_kind(bench: Workbench) -> None:
    """Guarded ones start programs, virtual ones are carried out by the harness."""
    told = bench.call("tools", "--json").data
    kinds = {row["name"]: row["kind"] for row in told["tools"]}
    assert list(kinds) == list(TOOLS)
    assert {name for name, kind in kinds.items() if kind == "virtual"} == {"finish", "delegate", "synthesize"}
    assert {name for name, kind in kinds.items() if kind == "guarded"} == {"run", "shell"}
    assert told["allowed_directories"] == [str(bench.files)]
    assert bench.call("tools").out.count("\n") == len(TOOLS) + 1


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_shows_the_schema_that_its_arguments_are_held_to(bench: Workbench, tool: str) -> None:
    """The same from Python, for people and as JSON."""
    schema = get_tool_argument_schema(tool)
    assert schema["type"] == "object"
    assert json.loads(bench.call("tools", tool).out) == schema
    assert bench.call("tools", tool, "--json").data["arguments"] == schema


def test_an_unknown_tool_is_named(bench: Workbench) -> None:
    """With what there is instead."""
    with pytest.raises(NotFound):
        get_tool_argument_schema("rm")
    done = bench.call("tools", "rm")
    assert (done.code, "there is no tool 'rm'" in done.err) == (2, True)


def test_file_tools_reach_the_workspace_and_nothing_else(tmp_path, monkeypatch) -> None:
    """A link is resolved; the current directory is the default."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert list_allowed_directories(tmp_path / "link") == [tmp_path / "real"]
    monkeypatch.chdir(tmp_path / "real")
    assert list_allowed_directories() == [tmp_path / "real"]
