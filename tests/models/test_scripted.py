"""A scripted model says what its script says, once each, and nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from harness.errors import ConfigInvalid, ModelFailed, ModelFault
from harness.models import script
from harness.models.script import Entry
from harness.models.scripted import ScriptedModel
from harness.ports import Message, ToolCall, Usage


class Verdict(BaseModel):
    good: bool


def _model(*entries: dict[str, Any]) -> ScriptedModel:
    return ScriptedModel([Entry.model_validate(entry) for entry in entries])


def _answer(model: ScriptedModel, prompt: str = "Is it good?") -> Any:
    return asyncio.run(model.answer("You judge.", prompt, Verdict, timeout_ms=1000))


def _turn(model: ScriptedModel, *messages: Message) -> Any:
    return asyncio.run(model.converse("You work.", messages or [Message("user", "Go")], [], timeout_ms=1000))


def test_answers_are_matched_by_shape_and_text_and_served_once() -> None:
    """The first entry that fits serves; what no question used is left over."""
    model = _model(
        {"shape": "Plan", "answer": {}},
        {"shape": "Verdict", "contains": ["judge", "beta"], "answer": {"good": False}},
        {"answer": {"good": True}, "usage": {"input_tokens": 7, "output_tokens": 2, "cost_usd": 0.5}},
    )
    first = _answer(model, "alpha")
    assert (first.value, first.usage, first.model) == (Verdict(good=True), Usage(1, 7, 2, 0.5), "scripted")
    assert _answer(model, "beta").value == Verdict(good=False)
    assert [entry.shape for entry in model.leftovers] == ["Plan"]


def test_a_turn_speaks_and_calls_tools() -> None:
    """Calls get ids that the turn decides, so that a repeated run says the same."""
    model = _model({"turn": 1, "say": "done"}, {"say": "I write", "calls": [{"tool": "w", "arguments": {"a": 1}}]})
    heard: list[str] = []
    first = asyncio.run(model.converse("", [Message("user", "Go")], [], timeout_ms=1, on_text=heard.append))
    assert first.message == Message("assistant", "I write", (ToolCall("call-0-0", "w", {"a": 1}),))
    assert heard == ["I write"]
    second = _turn(model, Message("user", "Go"), first.message, Message("tool", "ok", call_id="call-0-0"))
    assert second.message == Message("assistant", "done")
    assert model.leftovers == []


def test_an_entry_can_serve_often_or_without_end() -> None:
    """`times` counts; 0 never ends and is never left over."""
    model = _model({"times": 2, "answer": {"good": True}}, {"times": 0, "answer": {"good": False}})
    assert [_answer(model).value.good for _ in range(4)] == [True, True, False, False]
    assert model.leftovers == []


def test_an_answer_that_is_invalid_is_repaired_within_a_bound() -> None:
    """The next entries are the repairs, and each call is counted."""
    wrong = {"answer": {"good": "perhaps"}, "usage": {"input_tokens": 1}}
    repaired = _answer(_model(wrong, wrong, {"answer": {"good": True}}))
    assert (repaired.value.good, repaired.usage) == (True, Usage(3, 2, 0, None))
    with pytest.raises(ModelFailed) as caught:
        _answer(_model(*[wrong] * 5))
    assert (caught.value.kind, caught.value.message[:35]) == (
        ModelFault.BAD_RESPONSE,
        "scripted: the answer is no Verdict:",
    )


def test_a_fault_is_raised_with_its_wait() -> None:
    """Any kind of failure can be played."""
    with pytest.raises(ModelFailed) as caught:
        _turn(_model({"fail": {"kind": "rate_limit", "retry_after_ms": 1500}}))
    assert caught.value.as_dict() == {
        "code": "model_failed",
        "message": "the script says so",
        "hint": "",
        "kind": "rate_limit",
        "retry_after_ms": 1500,
    }


def test_a_question_without_an_answer_fails() -> None:
    """A script is never wider than it is written."""
    with pytest.raises(ModelFailed) as caught:
        _turn(_model({"turn": 3, "say": "late"}, {"answer": {"good": True}}))
    assert caught.value.message == "scripted has no answer left for turn 0 of a conversation"
    with pytest.raises(ModelFailed) as caught:
        _answer(_model({"say": "text"}))
    assert caught.value.message == "scripted has no answer left for a Verdict"


def test_usage_adds_up_and_an_unknown_price_stays_unknown() -> None:
    """Nothing spent has no price to know."""
    priced, unknown = Usage(1, 2, 3, 0.5), Usage(1, 2, 3)
    assert Usage() + priced + priced == Usage(2, 4, 6, 1.0)
    assert priced + unknown == Usage(2, 4, 6, None)


@pytest.mark.parametrize("name", ["script.yaml", "script.json"])
def test_a_script_is_read_from_a_file(tmp_path, name) -> None:
    """YAML or JSON; the model carries the file's name, not its place."""
    (tmp_path / name).write_text('[{"say": "hello", "usage": {"output_tokens": 1}}]')
    model = ScriptedModel.from_file(tmp_path / name)
    assert (model.name, _turn(model).message.text) == (f"scripted:{name}", "hello")


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("- say: a\n- fial: {}\n", "2:9", "Extra inputs are not permitted"),
        (
            "- say: a\n  answer: 1\n",
            "1:3",
            "Value error, an entry has exactly one of answer, say with or without calls, fail",
        ),
        ("- {say: a, say: b}\n", "1:12", "'say' is given twice; the first is on line 1"),
        ("say: a\n", "1:1", "Input should be a valid list"),
        ("- [\n", "2:1", None),
    ],
)
def test_a_wrong_script_is_refused_with_its_place(tmp_path, text, where, what) -> None:
    """File, line and column, as for a plan."""
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(ConfigInvalid) as caught:
        script.load(path)
    assert caught.value.message.startswith(f"{path}:{where}: ")
    assert what is None or caught.value.message == f"{path}:{where}: {what}"


def test_a_missing_script_is_named(tmp_path) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        script.load(tmp_path / "none.yaml")
    assert caught.value.message == f"the model's script {tmp_path / 'none.yaml'} does not exist"
