"""The specification's sample, end to end: a goal, a scripted model behind a real HTTP endpoint, a complex step, one answer."""

from __future__ import annotations

from typing import Any

import pytest
from orchestrator.test_goal_runs import SCRIBE, agent, calls, planned
from support.model_server import Answer, Ask, ModelServer, Turn
from support.workbench import Workbench

SPLIT = {"description": "compare them " * 200, "owns": ["ranked/**"], "complex": True}
TURNS: list[dict[str, Any]] = [
    {"steps": [planned("found.txt"), planned("ranked", **SPLIT, needs=[0]), planned("saved.txt", needs=[1])]},
    {"decision": "spawn", "reasons": ["each must be read"]},
    {"steps": [planned("ranked/one.txt"), planned("ranked/two.txt")]},
    {"answer": "The best three tutorials are in saved.txt."},
]


def sample(ask: Ask) -> Turn:
    """One answer after the other, as the questions come."""
    return Answer(TURNS[min(ask.earlier, len(TURNS) - 1)])


def test_the_sample_of_the_specification(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planned, one step split, its children merged into it, all merged into the run; the answer is the model's."""
    folder = bench.files / ".orchestrix"
    folder.mkdir()
    (folder / "config.toml").write_text(SCRIBE)
    (bench.files / ".git/info/exclude").write_text(".orchestrix/\n")
    with ModelServer() as server:
        server.scenarios["sample"] = sample
        monkeypatch.setenv("ORCHESTRIX_MODEL", "openai:gpt-4o-mini")
        monkeypatch.setenv("ORCHESTRIX_MODEL_BASE_URL", server.url("sample") + "/v1")
        monkeypatch.setenv("ORCHESTRIX_MODEL_API_KEY", "sk-sample")
        done = bench.call(*agent(bench, goal="find and save top 3 Python tutorials"))
        assert (done.code, done.reasons) == (0, ["merged"] * 3), done.out
        assert len(server.requests("sample")) == calls(bench) == len(TURNS)
    tree = bench.tree(done.data["head"])
    assert [tree[name] for name in ("found.txt", "ranked/one.txt", "ranked/two.txt", "saved.txt")] == ["done"] * 4
    assert done.data["final_response"].startswith("The best three tutorials are in saved.txt.")
