"""From a goal to merged commits and one answer, with a model that follows a script; an answer is never paid for twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.test_terminal import on_a_terminal
from support.coordinators import KILLED, ended, started, wait_until
from support.workbench import Workbench

# The agent writes the files that its step names, one on each line that begins with FILE.
SCRIBE = """
[agents.scribe]
command = ["sh", "-c", '''sed -n "s/^FILE //p" "$ORCHESTRIX_PROMPT_FILE" | while read -r name; do mkdir -p "$(dirname "$name")"; echo done > "$name"; done''']
"""


@pytest.fixture
def goals(bench: Workbench) -> Workbench:
    folder = bench.files / ".orchestrix"
    folder.mkdir()
    (folder / "config.toml").write_text(SCRIBE)
    (bench.files / ".git/info/exclude").write_text(".orchestrix/\n")
    return bench


def planned(name: str, **fields: Any) -> dict[str, Any]:
    return {"title": f"write {name}", "description": f"FILE {name}", "owns": [name], **fields}


def says(shape: str, **answer: Any) -> dict[str, Any]:
    return {"shape": shape, "answer": answer, "usage": {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.01}}


def script(bench: Workbench, *entries: dict[str, Any]) -> dict[str, str]:
    path = bench.root / "script.json"
    path.write_text(json.dumps(list(entries)))
    return {"ORCHESTRIX_MODEL": f"scripted:{path}"}


def of_type(bench: Workbench, kind: str, run: str = "latest") -> list[dict[str, Any]]:
    return [event["payload"] for event in bench.events(run) if event["type"] == kind]


def agent(bench: Workbench, *flags: str, goal: str = "write it all") -> tuple[str, ...]:
    return ("agent", goal, "--agent", "scribe", "--json", "--run-id", "g1", *flags)


def calls(bench: Workbench) -> int:
    runs = [run["run_id"] for run in bench.call("list", "--all", "--json").data["runs"]]
    return sum(fact["calls"] for run in runs for fact in of_type(bench, "model.answered", run))


def test_a_goal_becomes_a_plan_merged_commits_and_one_answer(goals: Workbench, monkeypatch) -> None:
    """One complex step is split and its children merged into it; the answer ends with the verified outcome."""
    split = planned("found", description="big " * 600, owns=["found/**"], complex=True)
    model = script(
        goals,
        says("PlanAnswer", steps=[planned("search.txt"), {**split, "needs": [0]}, planned("saved.txt", needs=[1])]),
        says("AnalysisAnswer", decision="spawn", reasons=["two separate things"]),
        says("PlanAnswer", steps=[planned("found/one.txt"), planned("found/two.txt")]),
        says("SynthesisAnswer", answer="Three tutorials were found and saved."),
    )
    monkeypatch.setenv("ORCHESTRIX_MODEL", model["ORCHESTRIX_MODEL"])
    done = goals.call(*agent(goals, goal="find and save top 3 Python tutorials"))
    assert (done.code, done.reasons) == (0, ["merged", "merged", "merged"]), done.out
    tree = goals.tree(done.data["head"])
    assert {
        name: tree[name] for name in ("search.txt", "found/one.txt", "found/two.txt", "saved.txt")
    } == dict.fromkeys(("search.txt", "found/one.txt", "found/two.txt", "saved.txt"), "done")
    assert done.data["final_response"] == "Three tutorials were found and saved.\n\n3 of 3 steps completed."
    finalized = of_type(goals, "workflow_finalized")[0]
    assert (finalized["status"], finalized["final_response_length"]) == ("COMPLETED", len(done.data["final_response"]))
    assert "Three tutorials" in goals.call("report", "latest").out
    assert calls(goals) == 4


def test_a_trivial_goal_costs_one_call(goals: Workbench, monkeypatch) -> None:
    """The plan; whether more is needed and the answer follow from facts."""
    monkeypatch.setenv(
        "ORCHESTRIX_MODEL", script(goals, says("PlanAnswer", steps=[planned("a.md")]))["ORCHESTRIX_MODEL"]
    )
    done = goals.call(*agent(goals))
    assert done.code == 0, done.out
    assert calls(goals) == 1
    nodes = [fact["chosen_node"] for fact in of_type(goals, "routing_decision") if fact["task"] is None]
    assert nodes == ["initial_planner", "classifier", "finalizer"]


def test_a_partial_plan_is_followed_by_another_on_top_of_it(goals: Workbench, monkeypatch) -> None:
    """Steps are numbered on, and stand on what is integrated by then."""
    model = script(
        goals,
        says("PlanAnswer", steps=[planned("first.md")], partial=True),
        says("ClassificationAnswer", more_work=True, reasons=["half done"], missing="the second file"),
        says("PlanAnswer", steps=[planned("second.md"), planned("third.md", needs=[0])]),
        says("SynthesisAnswer", answer="All three."),
    )
    monkeypatch.setenv("ORCHESTRIX_MODEL", model["ORCHESTRIX_MODEL"])
    done = goals.call(*agent(goals))
    assert (done.code, done.reasons) == (0, ["merged"] * 3), done.out
    assert [step["task_id"] for step in done.steps] == ["0", "1", "2"]
    assert done.steps[1]["start_point"] == done.steps[0]["merge_commit"]
    assert [fact["round"] for fact in of_type(goals, "plan.adopted")] == [1, 2]


def test_without_a_valid_plan_nothing_starts_and_the_run_waits(goals: Workbench, monkeypatch) -> None:
    """A resume asks again."""
    wrong = says("PlanAnswer", steps=[planned("a.md", agent="nobody")])
    monkeypatch.setenv("ORCHESTRIX_MODEL", script(goals, *[wrong] * 3)["ORCHESTRIX_MODEL"])
    first = goals.call(*agent(goals))
    assert (first.code, first.steps) == (7, [])
    monkeypatch.setenv(
        "ORCHESTRIX_MODEL", script(goals, says("PlanAnswer", steps=[planned("a.md")]))["ORCHESTRIX_MODEL"]
    )
    again = goals.call("resume", "latest", "--json")
    assert (again.code, again.reasons) == (0, ["merged"]), again.out


@pytest.mark.parametrize(
    "place",
    [
        "after:routing_decision",
        "after:model.answered",
        "before:plan.adopted",
        "after:plan.adopted",
        "before:work_classified",
        "before:workflow_finalized",
    ],
)
def test_a_kill_between_decision_and_effect_is_replayed_without_another_call(goals: Workbench, place: str) -> None:
    """The log has the answer: the script would have no second one."""
    model = script(
        goals, says("PlanAnswer", steps=[planned("a.md"), planned("b.md")]), says("SynthesisAnswer", answer="x")
    )
    assert ended(goals, *agent(goals), env={**model, "ORCHESTRIX_FAILPOINT": place}).code == KILLED
    spent = script(goals, says("SynthesisAnswer", answer="x")) if _asked(goals) else model
    done = ended(goals, "resume", "g1", "--json", env=spent)
    assert done.code == 0, done.out
    assert len(of_type(goals, "plan.adopted", "g1")) == 1
    decided = [fact["chosen_node"] for fact in of_type(goals, "routing_decision", "g1") if fact["task"] is None]
    assert decided == ["initial_planner", "classifier", "finalizer"]


def _asked(bench: Workbench) -> bool:
    return any(fact["purpose"] == "plan" for fact in of_type(bench, "model.answered", "g1"))


def test_everything_is_complex_ends_at_the_depth_that_is_allowed(goals: Workbench, monkeypatch) -> None:
    """A model that always splits is asked no further than the contract's depth."""
    vast = {"description": "FILE deep/a.txt\n" + "big " * 600, "owns": ["deep/**"], "complex": True}
    forever = [says("PlanAnswer", steps=[planned("deep", **vast)]), says("AnalysisAnswer", decision="spawn")]
    for entry in forever:
        entry["times"] = 50
    monkeypatch.setenv("ORCHESTRIX_MODEL", script(goals, *forever)["ORCHESTRIX_MODEL"])
    (goals.files / "deep").mkdir()
    (goals.files / "deep/keep.txt").write_text("x\n")
    goals.git("add", "deep/keep.txt")
    goals.git("commit", "-qm", "deep")
    done = goals.call(*agent(goals))
    assert done.code == 0, done.out
    depths = [run["run_id"].count("-s") for run in goals.call("list", "--all", "--json").data["runs"]]
    assert max(depths) == 2


def test_without_a_model_a_goal_is_refused_before_anything_is_made(goals: Workbench) -> None:
    """And a plan needs none."""
    refused = goals.call(*agent(goals))
    assert refused.code == 3
    assert not Path(goals.files / ".orchestrix/local/state.db").exists()


def test_recommended_tools_reach_the_agent(goals: Workbench, monkeypatch) -> None:
    """The analyzer's list, less what the contract does not allow, stands in the prompt of the step that is executed."""
    folder = goals.files / ".orchestrix"
    (folder / "config.toml").write_text(
        '[agents.scribe]\ncommand = ["sh", "-c", \'cp "$ORCHESTRIX_PROMPT_FILE" big.txt\']\n'
    )
    big = {"title": "big", "description": "big " * 600, "owns": ["big.txt"], "complex": True}
    wanted = ["read_file", "edit_file", "mcp:web/search"]
    model = script(
        goals,
        says("PlanAnswer", steps=[big]),
        says("AnalysisAnswer", decision="execute", recommended_tools=wanted),
    )
    monkeypatch.setenv("ORCHESTRIX_MODEL", model["ORCHESTRIX_MODEL"])
    done = goals.call(*agent(goals))
    assert done.code == 0, done.out
    assert (
        "## Recommended tools\nThese should suffice: read_file, edit_file." in goals.tree(done.data["head"])["big.txt"]
    )


@pytest.mark.parametrize("verb", ["agent", "resume"])
def test_the_answer_is_heard_while_it_is_given(goals: Workbench, monkeypatch, verb: str) -> None:
    """On a terminal, before the run has ended: also where another coordinator began the run."""
    plan = says("PlanAnswer", steps=[planned("a.md"), planned("b.md")])
    answer = says("SynthesisAnswer", answer="Both were written.\nNothing is missing.")
    args = ["agent", "write it all", "--agent", "scribe", "--run-id", "g1"]
    monkeypatch.setenv("CI", "1")  # plain lines in place of a table
    if verb == "resume":
        before = {**script(goals, plan), "ORCHESTRIX_FAILPOINT": "after:work_classified"}
        assert ended(goals, *args, env=before).code == KILLED
        args = ["resume", "g1"]
    seen = on_a_terminal(goals, *args, **script(goals, *([plan] if verb == "agent" else []), answer)).decode()
    assert "\r\nBoth were written.\r\nNothing is missing.\r\nsucceeded: 2 merged, 0 failed" in seen


def test_an_adopted_plan_is_in_the_checkpoint_at_once(goals: Workbench) -> None:
    """With an interval of an hour, before any of its steps is closed; a run made anew from it does not plan again."""
    gate = goals.root / "gate"
    (goals.files / ".orchestrix/config.toml").write_text(
        SCRIBE.replace("sed -n", f"while ! test -e {gate}; do sleep 0.02; done; sed -n")
    )
    saved = goals.files / ".orchestrix/local/runs/g1/checkpoints/latest.json"
    model = script(goals, says("PlanAnswer", steps=[planned("a.md")]))
    with started(goals, *agent(goals), env={**model, "ORCHESTRIX_CHECKPOINT_EVERY": "1h"}) as run:
        wait_until(saved.exists, "the checkpoint")
        run.kill()
    facts = [line["type"] for line in json.loads(saved.read_text())["logs"]["g1"]]
    assert ("plan.adopted" in facts, "agent.subagent_closed" in facts) == (True, False)
    for path in (goals.files / ".orchestrix/local").glob("state.db*"):
        path.unlink()
    gate.touch()
    done = ended(goals, "resume", "--from-checkpoint", str(saved), "--json", env=script(goals))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
