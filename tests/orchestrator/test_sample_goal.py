"""The sample that the orchestrator was described with, over a real endpoint: find and save the top 3 Python tutorials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agents.test_builtin import call, turn
from tests.support import checker
from tests.support.model_server import INPUT_TOKENS, OUTPUT_TOKENS, Answer, Ask, ModelServer, Say, Turn, obey, script
from tests.support.workbench import Workbench

GOAL = "find and save top 3 Python tutorials"
CRITERIA = [f"tutorial {number} is judged" for number in range(1, 6)]


def _step(title: str, writes: str, content: str, **fields: Any) -> dict[str, Any]:
    """A step whose description tells the scripted model which file to write."""
    told = f"{title}.\n{script({'write': writes, 'content': content})}"
    return {"title": title, "description": told, "owns": [writes], **fields}


PLAN = [
    _step("Search tutorials", "results.txt", "five links"),
    {
        "title": "Evaluate results",
        "description": "Judge what was found.",
        "owns": ["evaluation/**"],
        "needs": [0],
        "success_criteria": CRITERIA,
        "complex": True,
    },
    _step("Save the best links", "tutorials.md", "three links", needs=[1]),
]
CHILDREN = [
    _step("Score each", "evaluation/scores.txt", "5 4 3 2 1"),
    _step("Rank them", "evaluation/ranking.txt", "1 2 3", needs=[0]),
]
ANSWERS = {
    "You plan work": {"steps": PLAN},
    "You decide whether one agent": {"decision": "spawn", "reasons": ["two pieces of work"]},
    "You split one step": {"steps": CHILDREN},
    "You write the final answer": "The three best tutorials are in tutorials.md.",
}


def tutorials(ask: Ask) -> Turn:
    """Plans, analyses, splits and answers as the sample does; as an agent it writes what its step says."""
    for begin, value in ANSWERS.items():
        if begin in ask.system:
            return Say(value) if isinstance(value, str) else Answer(value)
    return Say("Done.") if ask.step else obey(ask)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    made = Workbench(tmp_path)
    made.commit({"README.md": "hello\n"})
    return made


@pytest.mark.parametrize(("provider", "suffix"), [("openai", "/v1"), ("anthropic", "")])
def test_the_sample_ends_with_a_saved_file_and_an_answer(bench, monkeypatch, provider, suffix) -> None:
    """Three tasks; the complex one is spawned, its children merge into its branch and that into the run."""
    with ModelServer({"tutorials": tutorials}) as server:
        monkeypatch.setenv("ORCHESTRIX_MODEL", f"{provider}:small")
        monkeypatch.setenv("ORCHESTRIX_MODEL_BASE_URL", server.url("tutorials") + suffix)
        monkeypatch.setenv("ORCHESTRIX_MODEL_API_KEY", "sk-very-secret")
        done = bench.call("agent", GOAL, "--json")
        asked = len(server.requests())
    assert done.code == 0, done.out + done.err
    assert bench.tree(done.data["head"]) == {
        "README.md": "hello",
        "results.txt": "five links",
        "evaluation/scores.txt": "5 4 3 2 1",
        "evaluation/ranking.txt": "1 2 3",
        "tutorials.md": "three links",
    }
    assert done.data["final_response"].startswith("The three best tutorials are in tutorials.md.")
    events = bench.events(done.data["run_id"])
    analysed = {
        event["task_id"]: event["payload"]["decision"] for event in events if event["type"] == "complexity_analyzed"
    }
    assert analysed["1"] == "spawn"
    (spawned,) = (event["payload"] for event in events if event["type"] == "subagent_spawned")
    assert (spawned["parent_task_id"], spawned["tasks_count"], spawned["subagent_id"]) == ("1", 2, "1.1")
    assert asked == _calls(bench, done.data["run_id"]) + _calls(bench, spawned["child_run"])
    purposes = [event["payload"]["purpose"] for event in events if event["type"] == "model.answered"]
    assert purposes == ["plan", "analysis", "decompose", "synthesis"]
    children = [event["task_id"] for event in bench.events(spawned["child_run"]) if event["type"].endswith("_merged")]
    assert children == ["1.1", "1.2"]
    assert checker.check(bench.files) == []
    spans = bench.call("trace", "--json").data["spans"]
    assert len({span["trace_id"] for span in spans}) == 1
    assert {"step 1", "step 1.1", "step 1.2", "chat small", "invoke_agent builtin"} <= {span["name"] for span in spans}


@pytest.mark.parametrize(("provider", "suffix"), [("openai", "/v1"), ("anthropic", "")])
def test_answers_that_are_not_valid_are_paid_for(bench, monkeypatch, provider, suffix) -> None:
    """Neither the plan's first answer, nor the analysis, nor an agent's empty turn is valid: the server's count is the run's."""

    def careless(ask: Ask) -> Turn:
        if not ask.earlier or "You decide whether one agent" in ask.system:
            return Answer({"nonsense": True})
        if "You plan work" in ask.system:
            return Answer(
                {
                    "steps": [
                        *PLAN[:1],
                        _step("Evaluate", "evaluation/all", "5", complex=True, success_criteria=CRITERIA),
                        *PLAN[2:],
                    ]
                }
            )
        if "Your step: number 0\n" in ask.everything and not (bench.root / "spoken").exists():
            (bench.root / "spoken").touch()
            return Say("")
        return tutorials(ask)

    with ModelServer({"careless": careless}) as server:
        monkeypatch.setenv("ORCHESTRIX_MODEL", f"{provider}:small")
        monkeypatch.setenv("ORCHESTRIX_MODEL_BASE_URL", server.url("careless") + suffix)
        monkeypatch.setenv("ORCHESTRIX_MODEL_API_KEY", "sk-very-secret")
        monkeypatch.setenv("ORCHESTRIX_RETRIES", "1")
        monkeypatch.setenv("ORCHESTRIX_BACKOFF_BASE", "1ms")
        done = bench.call("agent", GOAL, "--json")
        asked = len(server.requests())
    assert done.code == 0, done.out + done.err
    events = bench.events(done.data["run_id"])
    failed = [event["payload"]["purpose"] for event in events if event["type"] == "model.failed"]
    assert failed == ["analysis"]
    assert "bad_response" in str([event["payload"] for event in events if event["type"] == "attempt.finished"])
    used = done.data["usage"]
    assert used["calls"] == asked
    assert (used["input_tokens"], used["output_tokens"]) == (asked * INPUT_TOKENS, asked * OUTPUT_TOKENS)


def _scripted(bench: Workbench, monkeypatch: pytest.MonkeyPatch, *entries: dict[str, Any]) -> None:
    path = bench.root / "script.json"
    path.write_text(json.dumps(entries))
    monkeypatch.setenv("ORCHESTRIX_MODEL", f"scripted:{path}")


def _calls(bench: Workbench, run: str = "latest") -> int:
    """Calls of the model in a run: the run's own and those of its agents."""
    return sum(event["type"] in {"model.answered", "model.spoke"} for event in bench.events(run))


@pytest.mark.parametrize(("steps", "calls"), [(1, 2), (12, 14)])
def test_a_goal_costs_few_calls(bench, monkeypatch, steps, calls) -> None:
    """One for the plan, one for each simple step, one for the answer where there is something to sum up."""
    plan = [{"title": f"Write {n}", "description": "Write it.", "owns": [f"made-{n}.txt"]} for n in range(steps)]
    _scripted(
        bench,
        monkeypatch,
        {"shape": "PlanAnswer", "answer": {"steps": plan}},
        *(
            turn(
                call("write_file", path=f"made-{n}.txt", content="x"),
                call("finish", summary="Done."),
                contains=f"Your step: number {n}\n",
            )
            for n in range(steps)
        ),
        {"shape": "SynthesisAnswer", "answer": {"answer": "All is written."}},
    )
    done = bench.call("agent", "Write them", "--json")
    assert done.code == 0, done.out + done.err
    assert _calls(bench) == calls


def test_a_given_plan_of_one_step_costs_one_call(bench, monkeypatch) -> None:
    """The agent's own."""
    _scripted(
        bench, monkeypatch, turn(call("write_file", path="made.txt", content="x"), call("finish", summary="Done."))
    )
    done = bench.run({"title": "Write it", "agent": "builtin", "owns": ["made.txt"]})
    assert done.code == 0, done.out
    assert _calls(bench) == 1
