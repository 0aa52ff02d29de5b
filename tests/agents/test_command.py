"""Any program as an agent."""

from __future__ import annotations

import json
import os
import sys

import pytest

from harness.agents.command import CommandAgent
from harness.errors import ContractViolation
from harness.model.contract import Contract
from harness.model.verdict import Reason
from tests.agents.conformance import AgentConformance
from tests.agents.conftest import contract_for


def _sh(script: str, **options) -> Contract:
    return contract_for(command=["sh", "-c", script], **options)


class TestCommand(AgentConformance):
    def agent(self) -> CommandAgent:
        return CommandAgent()

    def writes(self) -> Contract:
        return _sh("printf done > made")

    def fails(self) -> Contract:
        return _sh("exit 3")

    def forbidden(self) -> Contract:
        return _sh("printf done > made", tools=["write_file"])

    def sleeps(self, word: str) -> Contract:
        return contract_for(command=["sh", "-c", "sleep 600; true", word])


_SHOW = """
import json, os, sys
names = ["RUN_ID", "STEP_IDX", "ATTEMPT"]
shown = {name: os.environ["ORCHESTRIX_" + name] for name in names}
prompt = sys.stdin.read()
shown["same_prompt"] = prompt == open(os.environ["ORCHESTRIX_PROMPT_FILE"]).read() and "the description" in prompt
shown["contract"] = json.load(open(os.environ["ORCHESTRIX_CONTRACT_FILE"]))["step"]["title"]
shown["report"] = os.path.relpath(os.environ["ORCHESTRIX_REPORT_FILE"])
shown["given"] = os.environ["GIVEN"]
open(os.environ["ORCHESTRIX_REPORT_FILE"], "w").write(json.dumps(shown))
"""


def test_the_program_gets_prompt_contract_and_report_path(stage) -> None:
    """Everything is on stdin, in files and in variables; the report's directory is there."""
    outcome = stage.play(CommandAgent(), contract_for(command=[sys.executable, "-c", _SHOW]))
    assert (outcome.failure, outcome.exit_code) == (None, 0)
    assert json.loads(stage.files()[".orchestrix/step-3-result.md"]) == {
        "RUN_ID": "r1",
        "STEP_IDX": "3",
        "ATTEMPT": "2",
        "same_prompt": True,
        "contract": "the title",
        "report": ".orchestrix/step-3-result.md",
        "given": "by the step",
    }


def test_a_program_named_by_settings_needs_no_command_in_the_step(stage) -> None:
    """Its own argument list wins."""
    outcome = stage.play(CommandAgent(["sh", "-c", "printf own > made"]), contract_for())
    assert outcome.failure is None
    assert stage.files() == {"made": "own"}


@pytest.mark.parametrize(
    ("script", "options", "expected"),
    [
        ("echo broken; exit 3", {}, (Reason.AGENT_FAILED, "sh exited with 3; it said last: broken", None)),
        ("exit 3", {}, (Reason.AGENT_FAILED, "sh exited with 3 and said nothing", None)),
        ("kill -9 $$", {}, (Reason.AGENT_FAILED, "sh exited with 137 and said nothing", None)),
        ("sleep 600", {"timeout_ms": 300}, (Reason.TIMEOUT, "sh was ended: timeout", None)),
        ("sleep 600", {"inactivity_ms": 300}, (Reason.INACTIVITY_TIMEOUT, "sh was ended: inactivity timeout", None)),
        ("exit 75", {}, (Reason.RATE_LIMITED, "sh asks to be tried again later", None)),
        (
            "echo a; echo ORCHESTRIX_RATE_LIMITED retry_after=1.5; echo b; exit 1",
            {},
            (Reason.RATE_LIMITED, "sh asks to be tried again later", 1500),
        ),
        (
            "echo 'x ORCHESTRIX_RATE_LIMITED retry_after=1'; exit 1",
            {},
            (Reason.AGENT_FAILED, "sh exited with 1; it said last: x ORCHESTRIX_RATE_LIMITED retry_after=1", None),
        ),
    ],
)
def test_each_bad_end_has_its_own_reason(stage, script, options, expected) -> None:
    """A retry, a pause and a larger limit are different answers, so the causes are told apart."""
    failure = stage.play(CommandAgent(), _sh(script, **options)).failure
    assert (failure.reason, failure.message, failure.retry_after_ms) == expected


def test_a_missing_program_is_not_worth_a_retry(stage) -> None:
    """It is the machine that lacks something."""
    failure = stage.play(CommandAgent(), contract_for(command=["no-such-agent"])).failure
    assert (failure.reason, failure.retryable) == (Reason.AGENT_MISSING, False)
    assert failure.message == "program 'no-such-agent' was not found or is not executable"


@pytest.mark.parametrize("tools", [(), ("write_file",), ("RUN",)])
def test_without_the_permission_to_run_nothing_starts(stage, tools) -> None:
    """Refused before the start: not even the prompt file is written."""
    failure = stage.play(CommandAgent(), _sh("true", tools=tools)).failure
    assert failure.reason is Reason.CONTRACT_REFUSED
    assert list((stage.root / "private").iterdir()) == []


def test_exit_zero_says_only_that_the_program_is_content(stage) -> None:
    """Success is decided elsewhere: an agent that did nothing still has no failure of its own."""
    assert stage.play(CommandAgent(), _sh("exit 0")).failure is None
    assert stage.files() == {}


def test_the_coordinator_s_environment_stays_its_own(stage, monkeypatch) -> None:
    """Only what the engine passes is seen."""
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    stage.play(CommandAgent(), _sh("env > made"))
    assert "secret" not in stage.files()["made"]
    assert os.environ["GITHUB_TOKEN"] == "secret"


def test_a_directory_for_the_report_that_leads_out_of_the_workspace_is_refused(stage, tmp_path) -> None:
    """One that is there already is taken as it is; a link is not followed out, and nothing is made behind it."""
    (stage.workspace / ".orchestrix").mkdir()
    assert stage.play(CommandAgent(), _sh("true")).failure is None
    (stage.workspace / ".orchestrix").rmdir()
    (stage.workspace / ".orchestrix").symlink_to(tmp_path / "outside")
    with pytest.raises(ContractViolation, match="leads out of the workspace"):
        stage.play(CommandAgent(), _sh("true"))
    assert not (tmp_path / "outside").exists()
