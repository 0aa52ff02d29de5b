"""Plans whose steps are done by an agent that is talked with."""

from __future__ import annotations

import json
import signal
import sys
import time

import pytest
from support.workbench import ROOT

from harness.agents.conformance.scenarios import script
from tests.sandbox.survivors import marked

AGENT = [sys.executable, str(ROOT / "fixtures" / "acp_agent.py")]


@pytest.fixture
def talking(bench):
    """The sample repository, with the fixture's agent under the name `scripted`."""
    folder = bench.files / ".orchestrix"
    folder.mkdir()
    (folder / "config.toml").write_text(f"[agents.scripted]\nacp = {json.dumps(AGENT)}\n")
    return bench


def _step(*actions, **fields):
    return {"title": "a step", "agent": "scripted", "description": script(*actions), **fields}


def test_two_steps_are_done_merged_and_told(talking) -> None:
    """Files through the broker, a command in a terminal, a plan, usage: all of it in the log, the report and the tree."""
    result = talking.run(
        _step({"write": "a.txt", "content": "new\n"}, {"read": "README.md"}, owns=["a.txt"]),
        _step({"run": "cat a.txt > b.txt; echo heard"}, {"say": "Fine."}, owns=["b.txt"], needs=[0]),
    )
    assert (result.code, result.reasons) == (0, ["merged", "merged"])
    tree = talking.tree(result.data["integration_ref"])
    assert (tree["a.txt"], tree["b.txt"]) == ("new", "new")
    told = [kind for kind in talking.types("0") if kind.startswith(("acp.", "permission.", "tool."))]
    assert told == [
        "acp.session_opened",
        "acp.plan_reported",
        "acp.call_reported",
        "permission.asked",
        "permission.allowed",
        "tool.called",
        "acp.call_reported",
        "acp.plan_reported",
        "acp.call_reported",
        "permission.asked",
        "permission.allowed",
        "tool.called",
        "acp.call_reported",
    ]
    assert talking.types("1").count("attempt.process_started") == 2
    shown = talking.call("logs").out
    assert "All done." in shown
    assert "==> step-1-attempt-1-terminal-1.log <==\nheard" in shown
    assert "input_tokens" in talking.call("report", "--step", "0").out


def test_a_permission_outside_the_contract_is_refused_and_the_step_ends_in_order(talking) -> None:
    """The agent hears no, goes on with what it may do, and its work is merged."""
    result = talking.run(
        _step(
            {"write": "README.md", "content": "not mine\n"},
            {"run": "touch b.txt"},
            {"write": "a.txt", "content": "mine\n"},
            owns=["a.txt"],
            allowed_tools=["read_file", "write_file"],
        )
    )
    assert (result.code, result.reasons) == (0, ["merged"])
    denied = [event["payload"] for event in talking.events() if event["type"] == "permission.denied"]
    assert [(item["tool_kind"], item["paths"], item["why"]) for item in denied] == [
        ("edit", ["README.md"], "README.md is not among the paths that the step owns"),
        ("execute", [], "the contract lacks run"),
    ]
    assert talking.tree(result.data["integration_ref"])["README.md"] == "# Sample"


def test_what_the_agent_does_is_seen_while_it_does_it(talking) -> None:
    """Plain progress shows calls, plans and denials as they come."""
    plan = talking.plan(_step({"write": "a.txt", "content": "x"}, {"fetch": "there"}, owns=["a.txt"]))
    shown = talking.call("run", str(plan)).err.splitlines()
    for line in (
        "step 0 talks with scripted 1.0",
        "step 0 plan: 0 of 1 done, now write",
        "step 0 edit a.txt: completed",
        "step 0 may not: fetch fetch there (the contract lacks fetch)",
    ):
        assert line in shown


def test_a_time_limit_leaves_nobody(talking) -> None:
    """Neither the agent nor its terminal outlives the step; the reason is the limit."""
    word = "acp-limit-91c4"
    result = talking.run(_step({"run": f"sleep 600; echo {word}"}, timeout="6s", owns=["a.txt"]))
    assert (result.code, result.reasons) == (124, ["timeout"])
    assert marked(word) == []


def test_an_interrupt_leaves_nobody_and_a_resume_starts_the_session_anew(talking) -> None:
    """Cancelled in the middle of a terminal's command; the next coordinator talks with a fresh agent."""
    word = "acp-cancel-66ba"
    wait = f"test -e {talking.root}/go || (touch {talking.root}/here; sleep 600; echo {word}); echo x > a.txt"
    plan = talking.plan(_step({"run": wait}, owns=["a.txt"]))
    with talking.process("run", str(plan), "--sandbox", "none") as process:
        while not (talking.root / "here").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert (process.returncode, marked(word)) == (130, []), said
    (talking.root / "go").touch()
    assert talking.call("resume", "latest", "--json").data["status"] == "succeeded"
    assert talking.types("0").count("acp.session_opened") == 2


def test_an_agent_that_died_with_its_coordinator_is_replaced(talking) -> None:
    """kill -9 of the coordinator ends the agent and its terminals too."""
    word = "acp-killed-0f2e"
    wait = f"test -e {talking.root}/go || (touch {talking.root}/here; sleep 600; echo {word}); echo x > a.txt"
    plan = talking.plan(_step({"run": wait}, owns=["a.txt"]))
    with talking.process("run", str(plan), "--sandbox", "none") as process:
        while not (talking.root / "here").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
        process.communicate()
    while marked(word):
        time.sleep(0.02)
    (talking.root / "go").touch()
    assert talking.call("resume", "latest", "--json").data["status"] == "succeeded"


def test_a_plan_without_such_an_agent_never_loads_the_library(talking) -> None:
    """`run` of an ordinary plan, `agents` and `config show` stay as quick as they were."""
    code = (
        "import sys\nfrom harness.cli import app\n"
        f"app.run(['run', {str(talking.plan({'title': 't', 'command': ['touch', 'x']}))!r}, '-q'])\n"
        "app.run(['agents']); app.run(['config', 'show'])\n"
        "assert not any(name == 'acp' or name.startswith('acp.') for name in sys.modules)\n"
    )
    import subprocess  # noqa: PLC0415 - one test needs an interpreter of its own

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=talking.files,
        env={"PYTHONPATH": str(ROOT), **__import__("os").environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "scripted     acp        available" in done.stdout
