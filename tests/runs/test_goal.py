"""A goal becomes a plan, merged commits and an answer; what a model was paid for is never asked again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import checker
from support.workbench import Workbench

PROGRAM = ["sh", "-c", 'echo done > "step-$ORCHESTRIX_STEP_IDX.txt"; echo "I wrote it." > "$ORCHESTRIX_REPORT_FILE"']


def step(idx: int, **fields: Any) -> dict[str, Any]:
    return {"title": f"Write {idx}", "description": "Do it.", "owns": [f"step-{idx}.txt"], **fields}


def plan(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"shape": "PlanAnswer", "answer": {"steps": list(steps)}, "usage": {"input_tokens": 9, "output_tokens": 4}}


def answer(text: str = "All is written.") -> dict[str, Any]:
    return {"shape": "SynthesisAnswer", "answer": {"answer": text}}


@pytest.fixture
def bench(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    """A repository whose agent writes one file and its report, and a model that follows `script.json`."""
    made = Workbench(tmp_path)
    made.commit({"a.txt": "one\n", ".orchestrix/config.toml": f"[agents.helper]\ncommand = {json.dumps(PROGRAM)}\n"})
    monkeypatch.setenv("ORCHESTRIX_MODEL", f"scripted:{tmp_path / 'script.json'}")
    return made


def script(bench: Workbench, *entries: dict[str, Any]) -> None:
    (bench.root / "script.json").write_text(json.dumps(entries))


def asked(bench: Workbench) -> list[str]:
    """What the model was asked in the latest run, in order."""
    return [event["payload"]["purpose"] for event in bench.events() if event["type"].startswith("model.")]


def test_a_goal_ends_with_merged_commits_and_an_answer(bench: Workbench) -> None:
    """Two steps: one question for the plan, one for the answer, both in the log with what they cost."""
    script(bench, plan(step(0), step(1)), answer())
    done = bench.call("agent", "Write both", "--agent", "helper", "--json")
    assert done.code == 0, done.out + done.err
    assert done.data["final_response"] == "All is written.\n\n2 of 2 steps completed."
    tree = bench.tree(done.data["head"])
    assert (tree["step-0.txt"], tree["step-1.txt"]) == ("done", "done")
    assert asked(bench) == ["plan", "synthesis"]
    types = [event["type"] for event in bench.events()]
    start = types.index("run.created")
    assert types[start : start + 6] == [
        "run.created",
        "routing_decision",
        "model.answered",
        "run.planned",
        "agent.subagent_created",
        "agent.subagent_created",
    ]
    finalized = next(event for event in bench.events() if event["type"] == "workflow_finalized")
    assert finalized["payload"]["final_response_length"] == len(done.data["final_response"])
    assert "## Answer\n\nAll is written." in bench.call("report").out
    assert checker.check(bench.files) == []


def test_one_trivial_step_asks_for_the_plan_only(bench: Workbench) -> None:
    """Its facts are the answer: with the agent's own call that is two."""
    script(bench, plan(step(0)))
    done = bench.call("agent", "Write one", "--agent", "helper")
    assert done.code == 0, done.err
    assert "1 of 1 steps completed.\n\n- step 0, Write 0: completed\n  - `step-0.txt`\n" in done.out
    assert asked(bench) == ["plan"]


def test_twelve_steps_ask_twice(bench: Workbench) -> None:
    """The plan and the answer; nothing is asked about simple steps, which merge in order."""
    script(bench, plan(*map(step, range(12))), answer())
    done = bench.call("agent", "Write twelve", "--agent", "helper", "--json")
    assert done.code == 0, done.out
    assert asked(bench) == ["plan", "synthesis"]
    merged = [event["task_id"] for event in bench.events() if event["type"] == "agent.worktree_merged"]
    assert merged == [str(idx) for idx in range(12)]


def test_a_plan_given_as_a_file_asks_nothing(bench: Workbench, monkeypatch) -> None:
    """The same router, engine and log, without a model."""
    monkeypatch.delenv("ORCHESTRIX_MODEL")
    done = bench.run(step(0, agent="helper"), step(1, agent="helper"))
    assert done.code == 0
    assert done.data["final_response"] is None
    assert asked(bench) == []


def test_a_check_of_the_person_binds_every_planned_step(bench: Workbench) -> None:
    """The model cannot plan around it: a step that fails it is not merged."""
    script(bench, plan(step(0), step(1)), answer("Everything succeeded!"))
    done = bench.call("agent", "Write both", "--agent", "helper", "--check", "test ! -e step-1.txt", "--json")
    assert done.code == 5
    assert done.reasons == ["merged", "check_failed"]
    assert done.data["final_response"] == "Everything succeeded!\n\n1 of 2 steps completed."


def test_no_valid_plan_ends_the_run_before_it_starts(bench: Workbench) -> None:
    """No sub-agent, no branch; the run is over and says why."""
    bad = plan(step(0, agent="nobody"))
    script(bench, bad, bad, bad)
    done = bench.call("agent", "Write it", "--agent", "helper", "--json")
    assert (done.code, done.envelope["error"]["code"]) == (1, "planning_failed")
    status = bench.call("status", "--json").data
    assert (status["status"], status["steps"]) == ("failed", [])
    assert "agent.subagent_created" not in [event["type"] for event in bench.events()]
    assert bench.git("branch", "--list", "orchestrix/*") == ""
    again = bench.call("resume", "latest", "--json")
    assert (again.code, again.envelope["error"]["code"], again.data["status"]) == (1, "planning_failed", "failed")


def test_a_model_that_cannot_be_reached_leaves_the_run_to_be_resumed(bench: Workbench) -> None:
    """The failure is a fact; later the same goal is planned in the same run."""
    script(bench, {"fail": {"kind": "unreachable", "message": "no route"}})
    done = bench.call("agent", "Write it", "--agent", "helper", "--json")
    assert (done.code, done.envelope["error"]["code"]) == (1, "model_failed")
    assert bench.call("status", "--json").data["status"] == "waiting"
    script(bench, plan(step(0)))
    assert bench.call("resume", "latest", "--json").data["status"] == "succeeded"
    assert [event["type"] for event in bench.events()].count("run.created") == 1


@pytest.mark.parametrize(
    ("point", "left"),
    [
        ("after:model.answered", [answer()]),
        ("before:run.planned", [answer()]),
        ("after:agent.subagent_created", [answer()]),
        ("after:model.answered#2", []),
        ("before:run.answered", []),
        ("after:run.answered", []),
    ],
)
def test_a_killed_coordinator_never_pays_twice(bench: Workbench, point: str, left: list) -> None:
    """Killed between an answer and its effect, the run goes on with a model that has only later answers left."""
    script(bench, plan(step(0), step(1)), answer())
    process = bench.process("agent", "Write both", "--agent", "helper", env={"ORCHESTRIX_FAILPOINT": point})
    process.communicate()
    assert process.returncode == -9
    script(bench, *left)
    done = bench.call("resume", "latest", "--json")
    assert done.code == 0, done.out + done.err
    assert done.data["final_response"] == "All is written.\n\n2 of 2 steps completed."
    assert asked(bench) == ["plan", "synthesis"]
    assert checker.check(bench.files) == []


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [((" ", "--agent", "helper"), 2, "the goal is empty"), (("Do it", "--agent", "nobody"), 3, "not available")],
)
def test_nothing_is_made_for_a_wrong_call(bench: Workbench, args, code, words) -> None:
    """No run, no cost."""
    done = bench.call("agent", *args)
    assert done.code == code
    assert words in done.err
    assert bench.call("list").out == ""


def test_without_a_model_the_hint_names_the_variable(bench: Workbench, monkeypatch) -> None:
    """Exit 3, and what to set."""
    monkeypatch.delenv("ORCHESTRIX_MODEL")
    done = bench.call("agent", "Do it", "--agent", "helper")
    assert done.code == 3
    assert "ORCHESTRIX_MODEL" in done.err
