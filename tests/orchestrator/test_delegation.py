"""An agent asks for smaller steps: they are checked, run one level deeper, and never reach beyond its contract."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.workbench import Workbench

from harness.errors import PlanningFailed
from harness.model import nesting
from harness.model.plan import Plan
from harness.orchestrator import delegated

DELEGATE = {
    "title": "Write two files",
    "description": "the whole",
    "agent": "builtin",
    "owns": ["p/**"],
    "can_spawn_children": True,
    "max_delegation_depth": 1,
    "allowed_tools": ["delegate", "write_file", "finish"],
}


def script(bench: Workbench, parts: list[dict[str, Any]]) -> str:
    """A model that delegates the whole and writes the parts."""
    entries = [{"contains": ["part " + part["title"]], "turn": 0, "calls": [_write(part["owns"][0])]} for part in parts]
    entries += [{"contains": ["part " + part["title"]], "turn": 1, "calls": [_finish()]} for part in parts]
    asked = [{**part, "description": "part " + part["title"]} for part in parts]
    entries.append(
        {"contains": ["the whole"], "turn": 0, "calls": [{"tool": "delegate", "arguments": {"steps": asked}}]}
    )
    path = bench.root / "script.json"
    path.write_text(json.dumps(entries))
    return f"scripted:{path}"


def _write(path: str) -> dict[str, Any]:
    return {"tool": "write_file", "arguments": {"path": path, "content": "done\n"}}


def _finish() -> dict[str, Any]:
    return {"tool": "finish", "arguments": {"summary": "done"}}


def test_an_agent_s_smaller_steps_are_merged_into_its_step(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attempt that asked is no failure; the nested run is named after the step."""
    parts = [{"title": "one", "owns": ["p/one.txt"]}, {"title": "two", "owns": ["p/two.txt"]}]
    monkeypatch.setenv("ORCHESTRIX_MODEL", script(bench, parts))
    done = bench.run(DELEGATE, flags=("--run-id", "r1"))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    tree = bench.tree(done.data["head"])
    assert (tree["p/one.txt"], tree["p/two.txt"]) == ("done", "done")
    assert [step["task_id"] for step in bench.call("status", "r1-s0", "--json").steps] == ["0.1", "0.2"]


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [{"title": "x", "owns": ["q/x.txt"]}],
        [{"title": "x", "owns": ["p/**"], "needs": [3]}],
        [{"title": "x", "surprise": 1}],
    ],
    ids=["none", "beyond the boundary", "an unknown need", "an unknown field"],
)
def test_smaller_steps_that_cannot_be_run_are_refused(steps: list[dict[str, Any]]) -> None:
    """With words; nothing is half-started."""
    contract = nesting.contract(Plan.model_validate({"steps": [DELEGATE]}), 0, "r", "auto")
    with pytest.raises(PlanningFailed):
        delegated.plan({"version": 1, "steps": steps}, contract)
