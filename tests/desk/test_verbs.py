"""Every command that drives a run: as an unprivileged user, on a terminal, from the wheel, on a repository of others."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from typing import Any

import pytest
from desk.conftest import Desk
from support.workbench import shell, write

# The tag is visible inside of the sandbox, and the user may set it between two commands.
_REPAIRED = "git rev-parse --quiet --verify refs/tags/repaired"
_SCRIBE = '[agents.scribe]\ncommand = ["sh", "-c", "echo done > made.txt"]\n'


def _after_repair(**fields: Any) -> dict[str, Any]:
    return shell(f"{_REPAIRED} && echo done > made.txt", owns=["made.txt"], **fields)


def _ended(desk: Desk, typed: tuple[int, str], code: int, kind: str) -> None:
    """The command ended so, said no nonsense, and every workspace of the run had the best kind."""
    assert typed[0] == code, typed[1]
    assert "Traceback" not in typed[1]
    kinds = desk.kinds()
    assert set(kinds) == {kind}, kinds


def _merged(desk: Desk) -> str:
    head = json.loads(desk.says("orchestrix", "status", "latest", "--json"))["data"]["head"]
    return desk.says("git", "show", f"{head}:made.txt")


def test_run_and_land(desk: Desk, best_kind: str) -> None:
    """The result is on the branch, and nothing else of the checkout changed."""
    plan = desk.plans(write("made.txt", "done\n"), shell("wc -l < console.py > lines.txt", owns=["lines.txt"]))
    _ended(desk, desk.types("run", plan), 0, best_kind)
    assert _merged(desk) == "done\n"
    code, screen = desk.types("land")
    assert code == 0, screen
    assert (desk.repo / "made.txt").read_text() == "done\n"
    assert desk.says("git", "status", "--porcelain") == ""


def test_resume_after_ctrl_c(desk: Desk, best_kind: str) -> None:
    """The terminal sends SIGINT; the same step works again when the run is resumed."""
    plan = desk.plans(shell(f"{_REPAIRED} || {{ echo begun; sleep 600; }}; echo done > made.txt", owns=["made.txt"]))

    def interrupt(keyboard: int) -> None:
        limit = time.monotonic() + 120
        while not any("begun" in log.read_text() for log in desk.repo.glob(".orchestrix/local/runs/*/logs/*.log")):
            assert time.monotonic() < limit, "the step never began"
            time.sleep(0.05)
        os.write(keyboard, b"\x03")

    _ended(desk, desk.types("run", plan, meanwhile=interrupt), 130, best_kind)
    desk.says("git", "tag", "repaired")
    _ended(desk, desk.types("resume"), 0, best_kind)
    assert _merged(desk) == "done\n"


def test_retry(desk: Desk, best_kind: str) -> None:
    """A failed step succeeds once its cause is gone, in a workspace of the same kind."""
    _ended(desk, desk.types("run", desk.plans(_after_repair())), 1, best_kind)
    desk.says("git", "tag", "repaired")
    _ended(desk, desk.types("retry", "latest", "0"), 0, best_kind)
    assert _merged(desk) == "done\n"


@pytest.mark.parametrize(("verb", "code"), [("approve", 0), ("reject", 1)])
def test_a_decision(desk: Desk, best_kind: str, verb: str, code: int) -> None:
    """An escalated step waits for a person, who has looked after the cause or not."""
    desk.writes("repo/.orchestrix/config.toml", '[errors]\nAgentFailed = "escalate"\n')
    _ended(desk, desk.types("run", desk.plans(_after_repair())), 7, best_kind)
    desk.says("git", "tag", "repaired")
    _ended(desk, desk.types(verb, "latest", "0"), code, best_kind)


def test_ci(desk: Desk, best_kind: str) -> None:
    """As on a runner that gives its jobs a terminal."""
    _ended(desk, desk.types("ci", desk.plans(write("made.txt", "done\n"))), 0, best_kind)
    assert list(desk.repo.glob(".orchestrix/local/ci/**/*.xml"))


def test_plan_then_agent(desk: Desk, best_kind: str) -> None:
    """A goal becomes a plan; the same goal becomes commits."""
    desk.writes("repo/.orchestrix/config.toml", _SCRIBE)
    planned = {"title": "write it", "description": "Write it.", "owns": ["made.txt"]}
    answers = [
        {"shape": "PlanAnswer", "answer": {"steps": [planned]}},
        {"shape": "SynthesisAnswer", "answer": {"answer": "It was written."}},
    ]
    script = desk.writes("script.json", json.dumps(answers))
    thinking = replace(desk, env={"ORCHESTRIX_MODEL": f"scripted:{script}"})
    code, screen = thinking.types("plan", "write it", "--agent", "scribe", "-o", "../plan.yaml")
    assert code == 0, screen
    _ended(desk, thinking.types("agent", "write it", "--agent", "scribe"), 0, best_kind)
    assert _merged(desk) == "done\n"


def test_demo(desk: Desk, best_kind: str) -> None:
    """The first command that anybody tries."""
    code, screen = desk.types("demo", str(desk.root / "home/demo"))
    assert code == 0, screen
    assert "As intended" in screen
    assert set(desk.kinds("-C", str(desk.root / "home/demo"))) == {best_kind}
