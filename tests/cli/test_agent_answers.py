"""`orchestrix agent` over real HTTP: the final answer reaches a person while it is given, and no question outlasts its time."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from cli.test_terminal import on_a_terminal
from support.model_server import Answer, Ask, Hang, ModelServer, Say, play
from support.workbench import Workbench

SAID = "Both files were written, as the goal asked."
STEPS = [
    {"title": f"write {name}", "description": "Write it.", "owns": [name], "needs": []} for name in ("a.txt", "b.txt")
]


def speaks(ask: Ask) -> Answer | Say:
    """A plan where a schema is asked for, plain words where none is."""
    return Answer({"steps": STEPS}) if ask.tools else Say(SAID)


@pytest.fixture
def model(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    settings = bench.files / ".orchestrix" / "config.toml"
    settings.parent.mkdir()
    settings.write_text('[agents.scribe]\ncommand = ["sh", "-c", \'echo done > a.txt; git add a.txt\']\n')
    (bench.files / ".git/info/exclude").write_text(".orchestrix/\n")
    with ModelServer({"speaks": speaks, "hangs": play(Hang())}) as server:
        monkeypatch.setenv("ORCHESTRIX_MODEL", "openai:scripted")
        monkeypatch.setenv("ORCHESTRIX_MODEL_BASE_URL", server.url("speaks") + "/v1")
        yield server


def test_a_person_at_a_terminal_hears_the_answer_before_the_outcome(bench: Workbench, model: ModelServer) -> None:
    """Once as the model says it, once with the outcome of the run; what the log keeps is the whole."""
    seen = on_a_terminal(bench, "agent", "write both", "--agent", "scribe", "--run-id", "g1", TERM="dumb").decode()
    assert seen.count(SAID) == 2, seen
    assert seen.index(SAID) < seen.index("run g1: ")
    stream = [request.ask.stream for request in model.requests() if not request.ask.tools]
    assert stream == [True]
    finalized = [event["payload"] for event in bench.events("g1") if event["type"] == "model.answered"][-1]
    assert finalized["answer"] == {"answer": SAID}


def test_json_is_the_answer_alone(bench: Workbench, model: ModelServer) -> None:
    """Nothing but the envelope, also on a terminal."""
    args = ("agent", "write both", "--agent", "scribe", "--json")
    seen = on_a_terminal(bench, *args, TERM="dumb").decode()
    assert seen.count(SAID) == 1, seen
    assert SAID in json.loads(seen[seen.index("{") :])["data"]["final_response"]


def test_model_timeout_binds_the_planner(bench: Workbench, model: ModelServer, monkeypatch) -> None:
    """A model that does not answer is given up after `model.timeout`, not after minutes."""
    monkeypatch.setenv("ORCHESTRIX_MODEL_BASE_URL", model.url("hangs") + "/v1")
    monkeypatch.setenv("ORCHESTRIX_MODEL_TIMEOUT", "300ms")
    done = bench.call("plan", "write both", "--agent", "scribe")
    assert done.code != 0
    assert "within 300ms" in done.err
