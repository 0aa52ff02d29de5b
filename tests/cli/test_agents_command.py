"""`orchestrix agents` says who can do a step and what binds them; `agents check` tries the installed program."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.support.workbench import Workbench

_PROFILE = """
version = 1
title = "Robot"
program = "robot"
call = { prompt = "stdin", arguments = ["--tools", "{tools}"] }
environment = { variables = ["ROBOT_URL"], secrets = ["ROBOT_KEY"], one_of = ["ROBOT_KEY"] }
check = { environment = { ROBOT_URL = "{url}/v1", ROBOT_KEY = "scripted-key" } }

[tools.grants]
write_file = ["write_file"]
bash = ["run"]

[[output.lines]]
when = { type = "result" }
take = { result = "text", input_tokens = "use.in", output_tokens = "use.out" }
ends = true

[[output.lines]]
when = { type = "error" }
take = { error = "text" }
ends = true
fails = true

[complaints]
rate_limited = ["status 429"]
auth_failed = ["status 401"]
context_full = ["maximum context length"]
"""
_CLAIMS = [
    "installed",
    "denies what is not allowed",
    "does a step",
    "says that its key is wrong",
    "says that its context is full",
    "says that it is rate limited",
    "leaves no process when cancelled",
]


@pytest.fixture
def robots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    """A repository with a profile, and its program on PATH."""
    bench = Workbench(tmp_path)
    folder = bench.files / ".orchestrix" / "agents"
    folder.mkdir(parents=True)
    (folder / "robot.toml").write_text(_PROFILE)
    programs = tmp_path / "bin"
    programs.mkdir()
    shutil.copy(Path(__file__).parents[1] / "agents" / "robot.py", programs / "robot.py")
    shim = programs / "robot"
    shim.write_text(f'#!/bin/sh\nexec "{Path(sys.executable).resolve()}" -S "{programs}/robot.py" "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    bench.commit({"README.md": "start\n"}, "Start")
    return bench


def test_every_agent_is_listed_with_what_binds_it(robots: Workbench) -> None:
    """Installed or not, its version, what the program keeps and what the sandbox keeps."""
    rows = {row["name"]: row for row in robots.call("agents", "--json").data["agents"]}
    assert {"actions", "command", "claude", "codex", "robot"} <= set(rows)
    robot = rows["robot"]
    assert (robot["kind"], robot["available"], robot["version"], robot["proven"]) == ("profile", True, "1.2.3", "")
    assert robot["program_enforces"] == ["allowed_tools"]
    assert set(robot["sandbox_enforces"]) <= {"directories", "processes", "time"}
    assert (rows["codex"]["program_enforces"], rows["actions"]["kind"]) == ([], "actions")
    text = robots.call("agents").out
    assert "robot            profile    available  1.2.3" in text
    assert "the program enforces allowed_tools; the sandbox" in text


def test_a_program_that_keeps_its_profile_passes_every_claim(robots: Workbench) -> None:
    """Against the scripted model, without a key of the user's."""
    result = robots.call("agents", "check", "robot")
    assert (result.code, result.out.splitlines()[1:]) == (0, [f"ok   {name}" for name in _CLAIMS[1:]])


def test_a_program_that_does_not_is_found_out(robots: Workbench) -> None:
    """It runs what was not granted, and takes a refused key for a success."""
    profile = robots.files / ".orchestrix" / "agents" / "robot.toml"
    careless = _PROFILE.replace('["--tools"', '["--careless", "--tools"').replace('"status 401"', '"never"')
    profile.write_text(careless)
    result = robots.call("agents", "check", "robot", "--json")
    failed = {claim["name"]: claim["detail"] for claim in result.data["claims"] if not claim["ok"]}
    assert result.code == 1
    assert failed["denies what is not allowed"] == "it ran bash though it was not granted"
    assert failed["says that its key is wrong"].startswith("the model's complaint became agent_failed: Robot reports")
    assert len(failed) == 2


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("aider", 1, "FAIL installed: program 'aider' was not found"),
        ("nobody", 2, "there is no agent 'nobody'"),
        ("actions", 2, "the agent 'actions' has no profile to check"),
    ],
)
def test_what_cannot_be_checked_says_why(robots: Workbench, name: str, code: int, said: str) -> None:
    """Missing, unknown, or without a profile."""
    result = robots.call("agents", "check", name)
    assert result.code == code
    assert said in result.out + result.err


def test_a_profile_in_the_project_does_a_plan(robots: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without code and without settings: the file's name is the agent's name, and its usage is in the report."""
    from tests.support.model_server import ModelServer, script  # noqa: PLC0415 - this test only

    with ModelServer() as server:
        monkeypatch.setenv("ROBOT_URL", f"{server.url('obey')}/v1")
        monkeypatch.setenv("ROBOT_KEY", "a-long-secret")
        description = script({"run": 'echo "$ROBOT_KEY"; printf two > two'}, {"write": "one", "content": "one"})
        result = robots.run({"title": "Both", "agent": "robot", "description": description})
    assert (result.code, result.reasons) == (0, ["merged"])
    assert {name: text for name, text in robots.tree(result.data["head"]).items() if name in {"one", "two"}} == {
        "one": "one",
        "two": "two",
    }
    report = robots.call("report", "latest", "--step", "0", "--json").data["report"]
    assert report["usage"] == {"agent": "robot", "input_tokens": 300, "output_tokens": 60, "result": "Done."}
    logs = (robots.files / ".orchestrix" / "local" / "runs").rglob("*")
    assert all(b"a-long-secret" not in path.read_bytes() for path in logs if path.is_file())


def test_a_profile_that_takes_a_name_is_refused(robots: Workbench) -> None:
    """Before anything runs, with the file."""
    folder = robots.files / ".orchestrix" / "agents"
    (folder / "robot.toml").rename(folder / "claude.toml")
    result = robots.call("agents")
    assert result.code == 3
    assert "claude.toml: the agent 'claude' exists already" in result.err
