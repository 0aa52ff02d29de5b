"""The built-in agent: a model in a loop over tools, bound by its contract whatever it says."""

from __future__ import annotations

from typing import Any

import pytest

from harness.agents.builtin import Bounds, BuiltinAgent
from harness.model import events as ev
from harness.model import limits
from harness.model.contract import Contract, Ownership, Permissions
from harness.model.verdict import Reason
from harness.models.script import Entry
from harness.models.scripted import ScriptedModel
from harness.ports import Outcome
from harness.tools.broker import Guard
from tests.agents.conformance import AgentConformance
from tests.agents.conftest import Stage, contract_for

REPORT = ".orchestrix/step-3-result.md"
_WRITE = {"tool": "write_file", "arguments": {"path": "made", "content": "done"}}
_FINISH = {"tool": "finish", "arguments": {"summary": "All done."}}


def turn(*calls: dict[str, Any], say: str = "", **fields: Any) -> dict[str, Any]:
    return {"say": say, "calls": list(calls), **fields}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def scripted(*entries: dict[str, Any]) -> ScriptedModel:
    return ScriptedModel([Entry.model_validate(entry) for entry in entries])


def contract(*tools: str, **changes: Any) -> Contract:
    return contract_for(tools=tools or ("read_file", "write_file", "edit_file", "shell", "grep")).model_copy(
        update=changes
    )


def play(stage: Stage, *entries: dict[str, Any], under: Contract | None = None, **bounds: Any) -> Outcome:
    model = scripted(*entries)
    outcome = stage.play(BuiltinAgent(lambda: model, Bounds(**bounds)), under or contract())
    assert model.leftovers == []
    return outcome


class TestBuiltin(AgentConformance):
    """What every agent promises, promised by a model; each contract carries its script in its title."""

    accounts = frozenset({REPORT})
    script: tuple[dict[str, Any], ...] = (turn(_WRITE, _FINISH),)

    def agent(self) -> BuiltinAgent:
        return BuiltinAgent(lambda: scripted(*self.script), Bounds())

    def writes(self) -> Contract:
        return contract("write_file")

    def fails(self) -> Contract:
        self.script = ({"fail": {"kind": "refused", "message": "I will not."}},)
        return contract("write_file")

    def forbidden(self) -> Contract:
        self.script = (turn(_WRITE, times=0),)
        return contract("read_file")

    def sleeps(self, word: str) -> Contract:
        self.script = (turn(call("shell", command=f"sleep 600; true {word}")),)
        return contract("shell")

    def test_nothing_to_do_is_refused(self, stage: Stage) -> None:
        """Without a tool there is nothing that a model could do, so it is not asked."""
        self.script = ()
        outcome = stage.play(self.agent(), contract_for(tools=()))
        assert outcome.failure.reason is Reason.CONTRACT_REFUSED


def test_a_trivial_step_costs_one_model_call(stage) -> None:
    """The last edit and the end stand in one turn; the account becomes the report."""
    outcome = play(stage, turn(_WRITE, _FINISH, usage={"input_tokens": 11, "output_tokens": 7, "cost_usd": 0.25}))
    assert outcome == Outcome(
        usage={
            "agent": "builtin",
            "model": "scripted",
            "calls": 1,
            "input_tokens": 11,
            "output_tokens": 7,
            "cost_usd": 0.25,
        }
    )
    assert stage.files() == {"made": "done", REPORT: '---\nstatus: "done"\ncriteria: []\n---\n\nAll done.\n'}
    assert stage.told == [("write_file", True, True), ("finish", True, True)]
    (spoke,) = stage.noted
    assert (spoke.type, spoke.turn, spoke.calls, spoke.cost_usd) == ("model.spoke", 1, ["write_file", "finish"], 0.25)


def test_what_tools_answer_is_told_to_the_model_and_words_end_the_work(stage) -> None:
    """A conversation of several turns; its words are in the step's log."""
    (stage.workspace / "a.txt").write_text("one\ntwo\n")
    outcome = play(
        stage,
        turn(call("read_file", path="a.txt"), say="I look."),
        turn(
            call("edit_file", path="a.txt", old="two", new="three"), call("edit_file", path="a.txt", old="zwei", new="")
        ),
        {"say": "It says three now."},
    )
    assert outcome.failure is None
    assert stage.files()["a.txt"] == "one\nthree\n"
    assert stage.told == [
        ("read_file", True, True),
        ("edit_file", True, True),
        ("edit_file", True, False),
        ("finish", True, True),
    ]
    assert (stage.root / "log").read_text() == "I look.\n\nIt says three now.\n"


def test_finish_waits_until_the_model_has_seen_a_failure(stage) -> None:
    """A call before it in the same turn failed: the model must look first."""
    play(stage, turn(call("read_file", path="none"), _FINISH), turn(_WRITE, _FINISH))
    assert [name for name, _, _ in stage.told] == ["read_file", "write_file", "finish"]


def test_a_failure_that_the_model_admits_is_in_its_report(stage) -> None:
    """The report is read like any agent's account."""
    play(stage, turn(call("finish", summary='No "way".\n---\nstatus: done', status="failed")))
    assert stage.files()[REPORT].startswith('---\nstatus: "failed"\ncriteria: []\nreason: "No \\"way\\".\\n---')


def test_denials_are_told_and_end_the_attempt_when_they_go_on(stage) -> None:
    """One denial is a lesson, many are a verdict."""
    outcome = play(stage, turn(call("delete_file", path="a")), turn(_WRITE, _FINISH))
    assert outcome.failure is None
    assert stage.told[0] == ("delete_file", False, False)
    stage.told.clear()
    outcome = play(stage, turn(call("delete_file", path="a"), times=limits.BUILTIN_DENIALS + 1))
    assert outcome.failure.reason is Reason.TOOL_DENIED
    assert outcome.failure.message.startswith("the model keeps asking: denied: step 3 may not use the tool delete_file")
    assert len(stage.told) == limits.BUILTIN_DENIALS + 1


@pytest.mark.parametrize(
    ("bounds", "entry", "words", "calls"),
    [
        ({"turns": 3}, {"times": 3}, "the model did not finish within 3 turns", 3),
        (
            {"tokens": 100},
            {"times": 2, "usage": {"input_tokens": 60}},
            "the model used 120 tokens; 100 are allowed",
            2,
        ),
    ],
)
def test_turns_and_tokens_are_bounded(stage, bounds, entry, words, calls) -> None:
    """The limit is the cause, and what was spent is told."""
    outcome = play(stage, turn(call("grep", pattern="x"), **entry), **bounds)
    assert (outcome.failure.reason, outcome.failure.message) == (Reason.LIMIT_EXCEEDED, words)
    assert outcome.usage["calls"] == calls


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("rate_limit", Reason.RATE_LIMITED),
        ("auth", Reason.AUTH_FAILED),
        ("context_full", Reason.CONTEXT_FULL),
        ("unreachable", Reason.AGENT_FAILED),
        ("timeout", Reason.AGENT_FAILED),
        ("bad_response", Reason.BAD_RESPONSE),
    ],
)
def test_a_model_s_fault_is_a_reason_of_the_step(stage, kind, reason) -> None:
    """A pause, a missing key and a lost connection want different answers."""
    outcome = play(stage, turn(_WRITE), {"turn": 1, "fail": {"kind": kind, "retry_after_ms": 900}}, call_ms=1_000)
    assert (outcome.failure.reason, outcome.failure.retry_after_ms) == (reason, 900)
    assert outcome.usage["calls"] == 1


def test_a_conversation_that_is_too_long_is_halved_once(stage) -> None:
    """The model says that it cannot read so much; old output goes, and it is asked again."""
    (stage.workspace / "long").write_text("line\n" * 3_000)
    reads = [turn(call("read_file", path="long")) for _ in range(9)]
    outcome = play(stage, *reads, {"turn": 9, "fail": {"kind": "context_full"}}, turn(_WRITE, _FINISH))
    assert outcome.failure is None
    (compacted,) = [fact for fact in stage.noted if isinstance(fact, ev.ContextCompacted)]
    assert compacted.after <= compacted.before // 2


def test_the_time_of_the_attempt_binds_the_model(stage) -> None:
    """A step whose time is over asks nothing more."""
    late = contract().model_copy(
        update={"execution": contract().execution.model_copy(update={"attempt_timeout_ms": 0})}
    )
    outcome = play(stage, under=late)
    assert (outcome.failure.reason, outcome.usage["calls"]) == (Reason.TIMEOUT, 0)


def test_delegation_is_a_request_for_a_plan(stage) -> None:
    """Only where the contract lets the step have children."""
    asked = call("delegate", steps=[{"title": "First", "owns": ["a/**"]}, {"title": "Second", "needs": [0]}])
    may = contract(
        "read_file",
        permissions=Permissions(allowed_tools=("read_file",), can_spawn_children=True, max_delegation_depth=1),
    )
    outcome = play(stage, turn(asked), under=may)
    assert outcome.subplan == {
        "version": 1,
        "goal": "the title\n\nthe description",
        "steps": [{"title": "First", "owns": ["a/**"]}, {"title": "Second", "needs": [0]}],
    }
    outcome = play(stage, turn(asked), turn(_FINISH))
    assert (outcome.subplan, stage.told[1]) == (None, ("delegate", False, False))


def test_a_guarded_tool_needs_the_user(stage) -> None:
    """The plan's permission is not enough for a shell; what is not owned is denied at once."""
    stage.guard = Guard(frozenset({"shell", "run"}), owned_only=True)
    bound = contract(ownership=Ownership(paths=("src/**",)))
    play(
        stage,
        turn(call("shell", command="touch made")),
        turn(call("run", command="touch made")),
        turn(call("write_file", path="made", content="")),
        turn(call("write_file", path="src/made", content="ok"), _FINISH),
        under=bound,
    )
    assert stage.told[:3] == [("shell", False, False), ("run", False, False), ("write_file", False, False)]
    assert set(stage.files()) == {"src/made", REPORT}
