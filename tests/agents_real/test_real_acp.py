"""Real agents that are talked with: each does a two-step plan against the scripted model, inside the sandbox."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.agents_real.interrupt import leaves_nothing, tool_runs
from tests.sandbox.survivors import kill_marked, marked
from tests.support.checker import check
from tests.support.model_server import ModelServer, script
from tests.support.workbench import Workbench

pytestmark = pytest.mark.agents
KEY = "scripted-key"


@dataclass(frozen=True)
class Known:
    """An agent as a user would write it into the settings; `{url}` is where its model is."""

    settings: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)


AGENTS = {
    "gemini": Known(
        {"acp": ["gemini", "--acp", "-m", "gemini-2.5-flash"], "auth": "gemini-api-key", "serves": ["write"]},
        {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
    ),
    "opencode": Known(
        {"acp": ["opencode", "acp"]},
        {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_CONFIG_CONTENT": json.dumps(
                {
                    "model": "here/scripted",
                    "permission": {"*": "ask"},
                    "provider": {
                        "here": {
                            "npm": "@ai-sdk/openai-compatible",
                            "options": {"baseURL": "{url}/v1", "apiKey": KEY},
                            "models": {"scripted": {}},
                        }
                    },
                }
            ),
        },
    ),
}


@dataclass
class Talking:
    """A repository whose settings name one real agent as `it`."""

    bench: Workbench

    def step(self, title: str, *actions: dict[str, str], **fields: Any) -> dict[str, Any]:
        return {"title": title, "agent": "it", "description": script(*actions), "timeout": "3m", **fields}

    def facts(self, *types: str) -> list[dict[str, Any]]:
        return [event["payload"] for event in self.bench.events() if event["type"] in types]


@pytest.fixture(params=AGENTS)
def talking(request: pytest.FixtureRequest, tmp_path: Path, state_home: Path, server: ModelServer, monkeypatch):
    known = AGENTS[request.param]
    for name, value in known.environment.items():
        monkeypatch.setenv(name, value.replace("{url}", server.url("obey")))
    bench = Workbench(tmp_path)
    folder = bench.files / ".orchestrix"
    folder.mkdir()
    settings = {**known.settings, "env": sorted(known.environment)}
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    (folder / "config.toml").write_text("\n".join(["[agents.it]", *lines, ""]))
    bench.commit({"README.md": "start\n"}, "Start")
    yield Talking(bench)
    assert check(bench.files) == []


def test_a_plan_is_done_and_what_the_contract_forbids_is_refused(talking: Talking) -> None:
    """It asks, hears yes for its own file and no for a command, and both steps end in order."""
    result = talking.bench.run(
        talking.step("First", {"write": "one.txt", "content": "one\n"}, owns=["one.txt"], checks=["test -s one.txt"]),
        talking.step(
            "Second",
            {"write": "two.txt", "content": "two\n"},
            {"run": "printf ran > ran.txt"},
            needs=[0],
            allowed_tools=["read_file", "write_file", "edit_file"],
            checks=["grep -q one one.txt"],
        ),
        flags=("--sandbox", "bwrap"),
    )
    assert result.code == 0, result.out + talking.bench.call("logs", "latest").out[-3000:]
    files = {name: text for name, text in talking.bench.tree(result.data["head"]).items() if name.endswith(".txt")}
    assert files == {"one.txt": "one", "two.txt": "two"}
    allowed = [(fact["tool_kind"], fact["paths"]) for fact in talking.facts("permission.allowed")]
    assert allowed == [("edit", ["one.txt"]), ("edit", ["two.txt"])]
    denied = [(fact["tool_kind"], fact["why"]) for fact in talking.facts("permission.denied")]
    assert denied == [("execute", "the contract lacks run")]
    assert len(talking.facts("acp.session_opened")) == 2
    assert all(KEY.encode() not in log.read_bytes() for log in talking.bench.files.rglob("*.log"))


def test_a_write_outside_the_boundary_is_refused_at_once(talking: Talking) -> None:
    """The file stays as it was, and no attempt is wasted on finding out later."""
    result = talking.bench.run(
        talking.step("Stray", {"write": "README.md", "content": "mine\n"}, owns=["one.txt"], allow_empty=True)
    )
    denied = [(fact["paths"], fact["why"]) for fact in talking.facts("permission.denied")]
    assert denied == [(["README.md"], "README.md is not among the paths that the step owns")]
    assert talking.bench.tree(result.data["head"])["README.md"] == "start"


def test_a_time_limit_leaves_no_process(talking: Talking) -> None:
    """Neither of the agent nor of what its tools had started."""
    word = f"marker-{secrets.token_hex(8)}"
    step = talking.step("Slow", {"run": f"touch started; sleep 600; : {word}"}, timeout="30s", allow_empty=True)
    result = talking.bench.run(step)
    try:
        assert (result.code, result.reasons) == (124, ["timeout"])
        assert marked(word) == []
    finally:
        kill_marked(word)


def test_an_interrupt_leaves_no_process(talking: Talking) -> None:
    """Ctrl-C while a tool of the agent sleeps."""
    word = f"marker-{secrets.token_hex(8)}"
    step = talking.step("Slow", {"run": f"touch started; sleep 600; : {word}"}, timeout="10m", allow_empty=True)
    leaves_nothing(talking.bench, step, word, lambda: tool_runs(word))
