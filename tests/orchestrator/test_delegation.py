"""An agent asks for smaller steps: they are checked, run one level deeper, and never reach beyond its contract."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.workbench import Workbench

from harness.errors import PlanningFailed
from harness.model import nesting
from harness.model.plan import Plan
from harness.orchestrator import nested_plan

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
        nested_plan.delegated({"version": 1, "steps": steps}, contract)


@pytest.mark.parametrize("allowed", [1, 2, 3])
def test_delegation_goes_as_deep_as_the_contract_says(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, allowed: int
) -> None:
    """An agent that delegates on every level is let do so `max_delegation_depth` times; the last one writes."""
    entries = []
    for level in range(allowed):
        part = {"title": f"part {level + 1}", "description": f"on level {level + 1}.", "owns": ["p/**"]}
        calls = [{"tool": "delegate", "arguments": {"steps": [part]}}]
        entries.append({"contains": [f"on level {level}."], "turn": 0, "calls": calls})
    last = f"on level {allowed}."
    denied = [{"tool": "delegate", "arguments": {"steps": [{"title": "too deep"}]}}]
    entries += [
        {"contains": [last], "turn": 0, "calls": denied},
        {"contains": [last], "turn": 1, "calls": [_write("p/one.txt")]},
        {"contains": [last], "turn": 2, "calls": [_finish()]},
    ]
    path = bench.root / "script.json"
    path.write_text(json.dumps([{**entry, "usage": {"input_tokens": 10, "output_tokens": 3}} for entry in entries]))
    monkeypatch.setenv("ORCHESTRIX_MODEL", f"scripted:{path}")
    step = DELEGATE | {"description": "on level 0.", "max_delegation_depth": allowed, "decompose": "never"}
    done = bench.run(step, flags=("--run-id", "r1"))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    deepest = "r1-s0" + "-s1" * (allowed - 1)
    told = [json.loads(line) for line in bench.call("events", "r1", "--nested", "--json").out.splitlines()]
    calls = [event["payload"] for event in told if event["type"] in ("model.spoke", "model.answered")]
    assert len(calls) == allowed + 3
    for name in ("input_tokens", "output_tokens"):
        assert done.data["usage"][name] == sum(call[name] for call in calls) > 0
    assert [event["type"] for event in bench.events(deepest)].count("tool.denied") == 1
    assert [len(bench.call("status", deepest[: 5 + 3 * level], "--json").steps) for level in range(allowed)] == [
        1
    ] * allowed


def _parent(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"title": "parent", "steps": list(steps), **fields}


LEAF = {"title": "leaf", "command": ["true"]}


@pytest.mark.parametrize(
    ("step", "defaults", "field", "says"),
    [
        (_parent(LEAF, can_spawn_children=False), {}, "can_spawn_children", "forbids them"),
        (_parent(LEAF), {"can_spawn_children": False}, "can_spawn_children", "forbids them"),
        (
            _parent(LEAF, max_delegation_depth=0),
            {},
            "max_delegation_depth",
            "1 level deep, and `max_delegation_depth` allows 0",
        ),
        (
            _parent(_parent(LEAF), max_delegation_depth=1),
            {},
            "max_delegation_depth",
            "2 levels deep, and `max_delegation_depth` allows 1",
        ),
    ],
)
def test_written_steps_that_the_step_may_not_have_are_refused(
    bench: Workbench, step: dict[str, Any], defaults: dict[str, Any], field: str, says: str
) -> None:
    """By `validate`, in words, at the step's own field."""
    refused = bench.call("validate", str(bench.plan(step, defaults=defaults)), "--json")
    assert refused.code == 2
    problems = {problem["field"]: problem["message"] for problem in refused.envelope["error"]["errors"]}
    assert says in problems[f"steps[0].{field}"]


def test_more_written_levels_than_there_can_be_are_refused(bench: Workbench) -> None:
    """A step of eight levels is fine, one of nine is not."""
    step = LEAF
    for _ in range(8):
        step = _parent(step)
    assert bench.call("validate", str(bench.plan(step))).code == 0
    refused = bench.call("validate", str(bench.plan(_parent(step))), "--json")
    assert (refused.code, "9 levels deep; at most 8" in refused.out) == (2, True)
