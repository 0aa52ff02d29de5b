"""What a program tells is found by paths and patterns, and nothing that it writes can break the reading."""

from __future__ import annotations

import json

import pytest

from harness.agents.agent_output import AgentOutput
from harness.agents.profile import Output

_CLAUDE_LIKE = {
    "lines": [
        {"when": {"type": "init"}, "take": {"session_id": "session", "model": "model"}},
        {"when": {"type": "step"}, "take": {"input_tokens": "use.in", "cost_usd": "use.cost"}, "adds": True},
        {
            "when": {"type": "result"},
            "take": {"result": "text", "error": "text", "failed": "is_error", "denied": "denials"},
            "ends": True,
            "fails_if": {"text": "^API Error"},
        },
    ]
}


def _told(*events: object, output: dict | None = None) -> AgentOutput:
    told = AgentOutput(Output.model_validate(output or _CLAUDE_LIKE))
    for event in events:
        told.line(event if isinstance(event, bytes) else json.dumps(event).encode())
    return told


def test_lines_become_usage() -> None:
    """Later words replace earlier ones, numbers of adding rules are summed, a list is counted."""
    told = _told(
        {"type": "init", "session": "s1", "model": "m"},
        {"type": "step", "use": {"in": 10, "cost": 0.1}},
        {"type": "step", "use": {"in": 5, "cost": 0.2}},
        {"type": "other", "use": {"in": 1000}},
        {"type": "result", "text": "done", "is_error": False, "denials": [{}, {}]},
    )
    assert (told.ended, told.failed) == (True, False)
    assert told.usage == {
        "cost_usd": 0.3,
        "denied": 2,
        "input_tokens": 15,
        "model": "m",
        "result": "done",
        "session_id": "s1",
    }


@pytest.mark.parametrize(
    "result",
    [{"type": "result", "text": "broken", "is_error": True}, {"type": "result", "text": "API Error: broken"}],
)
def test_a_failure_is_told_by_a_flag_or_by_its_words(result) -> None:
    """Its words come first, the whole line after them."""
    told = _told(result)
    assert (told.ended, told.failed) == (True, True)
    assert told.error.splitlines() == [result["text"], json.dumps(result)]


def test_hostile_lines_are_skipped() -> None:
    """Garbage, deep nesting, wrong types and half lines tell nothing and raise nothing."""
    told = _told(
        b"",
        b"plain text",
        b"{not json",
        b'{"type": "result"',
        b'{"a":' * 100_000,
        b"\xff\xfe{}",
        b'{"type": ["result"]}',
        {"type": "step", "use": "nothing"},
        {"type": "step", "use": {"in": {"deep": 1}, "cost": "a lot"}},
        {"type": "init", "session": {"a": 1}, "model": "\x1b[31m" + "m" * 2000},
    )
    assert (told.ended, told.failed) == (False, False)
    assert told.usage["input_tokens"] == 0
    assert told.usage["model"] == "m" * 500


def test_a_document_is_judged_by_its_values() -> None:
    """Paths go through lists; what is not the value of a success is a failure."""
    output = {
        "document": {
            "path": "t.json",
            "take": {"input_tokens": "messages.*.usage.in", "error": "info.status", "turns": "info.calls.0"},
            "succeeded": {"info.status": "Submitted"},
        }
    }
    rule = Output.model_validate(output).document
    good, bad = _told(output=output), _told(output=output)
    good.document(
        '{"info": {"status": "Submitted", "calls": [3]}, "messages": [{}, {"usage": {"in": 7}}, {"usage": {"in": 5}}]}',
        rule,
    )
    bad.document('{"info": {"status": "RateLimitError"}}', rule)
    bad.document("not json", rule)
    assert (good.ended, good.failed, good.usage) == (True, False, {"input_tokens": 12, "turns": 3})
    assert (bad.failed, bad.error) == (True, "RateLimitError")


def test_text_is_read_by_named_groups() -> None:
    """The last place counts; thousands and dollars are numbers; a group `error` is a failure."""
    patterns = [r"Tokens: (?P<input_tokens>\S+) sent", r"Cost: (?P<cost_usd>\S+)", r"^(?P<error>Fatal.*)$"]
    told = _told(output={"text": patterns})
    told.text("Tokens: 1 sent\nTokens: 1.5k sent\nCost: $0.25", patterns)
    assert (told.failed, told.usage) == (False, {"cost_usd": 0.25, "input_tokens": 1500})
    told.text("Fatal: no", patterns)
    assert (told.failed, told.error) == (True, "Fatal: no")


def test_a_line_of_text_can_be_the_last() -> None:
    """Only where the profile says so."""
    assert AgentOutput(Output(ends="^Exit:$")).line(b"Exit:") is True
    assert AgentOutput(Output(ends="^Exit:$")).line(b"Exit: later") is False
    assert AgentOutput(Output()).line(b"Exit:") is False
