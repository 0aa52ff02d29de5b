"""`orchestrix plan`: a goal becomes a file for review, and nothing else happens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.workbench import Workbench

STEP = {"title": "Write the limiter", "description": "Limit it.\nThen test it.", "owns": ["src/limiter.py"]}
USED = {"input_tokens": 120, "output_tokens": 30, "cost_usd": 0.01}


@pytest.fixture
def planner(bench: Workbench, monkeypatch: pytest.MonkeyPatch):
    """Sets a scripted model that gives these answers, and an agent that could do the steps."""
    settings = bench.files / ".orchestrix" / "config.toml"
    settings.parent.mkdir()
    settings.write_text('[agents.helper]\ncommand = ["true"]\n')

    def script(*steps: list[dict[str, Any]]) -> Workbench:
        path = bench.root / "script.json"
        path.write_text(json.dumps([{"answer": {"steps": answer}, "usage": USED} for answer in steps]))
        monkeypatch.setenv("ORCHESTRIX_MODEL", f"scripted:{path}")
        return bench

    return script


def test_a_goal_becomes_a_readable_plan_that_validates(planner) -> None:
    """The file is what a person would write; it validates and runs nothing."""
    bench = planner([STEP])
    done = bench.call("plan", "Add rate limiting", "-o", "plan.yaml", "--agent", "helper", "--check", "test -d src")
    assert (done.code, done.out) == (0, "")
    assert done.err == (
        "1 steps by scripted:script.json (120 + 30 tokens)\nnext: read plan.yaml, then orchestrix run plan.yaml\n"
    )
    assert (bench.files / "plan.yaml").read_text() == (
        "version: 1\n"
        "goal: Add rate limiting\n"
        "overlap: refuse\n"
        "defaults:\n"
        "  agent: helper\n"
        "  checks: [test -d src]\n"
        "steps:\n"
        "  - title: Write the limiter\n"
        "    description: |-\n"
        "      Limit it.\n"
        "      Then test it.\n"
        "    owns: [src/limiter.py]\n"
    )
    assert bench.call("validate", "plan.yaml").code == 0
    assert bench.call("list").out == ""


def test_without_a_file_the_plan_goes_to_stdout(planner) -> None:
    """`orchestrix plan GOAL | orchestrix run -` is possible."""
    done = planner([STEP]).call("plan", "Add rate limiting", "--agent", "helper")
    assert done.code == 0
    assert done.out.startswith("version: 1\ngoal: Add rate limiting\n")


def test_machines_get_the_plan_and_what_it_cost(planner) -> None:
    """One envelope."""
    data = planner([STEP]).call("plan", "Limit", "--agent", "helper", "--json").data
    assert data.pop("text").startswith("version: 1\ngoal: Limit\n")
    assert data.pop("plan")["steps"] == [STEP]
    assert data == {
        "path": None,
        "partial": False,
        "rounds": 1,
        "waves": [[0]],
        "model": "scripted:script.json",
        "usage": {"calls": 1, **USED},
    }


def test_a_file_is_never_overwritten_unless_asked(planner) -> None:
    """It is refused before the model is paid: the script still has its answer afterwards."""
    bench = planner([STEP])
    (bench.files / "plan.yaml").write_text("mine")
    refused = bench.call("plan", "Limit", "-o", "plan.yaml", "--agent", "helper")
    assert (refused.code, refused.err) == (
        2,
        "orchestrix: plan.yaml exists already (name another file, or give --force)\n",
    )
    assert (bench.files / "plan.yaml").read_text() == "mine"
    assert bench.call("plan", "Limit", "-o", "plan.yaml", "--agent", "helper", "--force").code == 0
    assert (bench.files / "plan.yaml").read_text().startswith("version: 1\n")


def test_a_model_that_plans_badly_leaves_no_file(planner) -> None:
    """Every problem is told, and the last round was the third."""
    bad = [{**STEP, "owns": ["/etc/passwd"]}]
    bench = planner(bad, bad, bad)
    done = bench.call("plan", "Limit", "-o", "plan.yaml", "--agent", "helper", "--json")
    assert (done.code, done.envelope["error"]["code"]) == (1, "planning_failed")
    assert done.envelope["error"]["problems"] == [
        "steps[0].owns[0]: '/etc/passwd' is absolute (write it from the repository root: etc/passwd)"
    ]
    assert not (bench.files / "plan.yaml").exists()


def test_without_a_model_the_hint_names_the_variable(bench: Workbench) -> None:
    """Exit 3, and what to set."""
    (bench.files / ".orchestrix").mkdir()
    (bench.files / ".orchestrix" / "config.toml").write_text('[agents.helper]\ncommand = ["true"]\n')
    done = bench.call("plan", "Limit", "--agent", "helper")
    assert done.code == 3
    assert "ORCHESTRIX_MODEL" in done.err


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("", "--agent", "helper"), 2, "the goal is empty"),
        (("\udcff", "--agent", "helper"), 2, "the goal is not text"),
        (("Limit", "--agent", "nobody"), 3, "agent 'nobody' is not available"),
        (("Limit", "--agent", "command"), 2, "the agent command needs more than a goal"),
        (("Limit", "--agent", "helper", "--context", "missing.txt"), 2, "missing.txt"),
        (("Limit", "--agent", "helper", "--base", "nowhere"), 2, "nowhere"),
    ],
)
def test_a_wrong_call_is_told_before_the_model_is_asked(planner, args, code, words) -> None:
    """No traceback, no cost."""
    done = planner([STEP]).call("plan", *args)
    assert done.code == code
    assert words in done.err
    assert "Traceback" not in done.err


def test_the_planner_sees_the_commit_and_the_context(planner) -> None:
    """Tracked files of the base only, AGENTS.md and the text that was given: the script wants to find them."""
    bench = planner()
    bench.commit({"AGENTS.md": "Use tabs.", "src/app.py": "pass"})
    (bench.files / "untracked.py").write_text("pass")
    (bench.root / "notes.txt").write_text("Redis is there.")
    wanted = ["Use tabs.", "app.py", "Redis is there.", "Python 1"]
    (bench.root / "script.json").write_text(json.dumps([{"contains": wanted, "answer": {"steps": [STEP]}}]))
    notes = str(bench.root / "notes.txt")
    assert bench.call("plan", "Limit", "--agent", "helper", "--context", notes).code == 0
