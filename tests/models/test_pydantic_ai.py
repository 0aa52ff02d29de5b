"""The model library behind the port: the same claims hold in both wire formats."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from harness.errors import ModelFailed, ModelFault
from harness.models.access import Access
from harness.models.pydantic_ai import PydanticAiModel
from harness.ports import Message, ToolOffer
from tests.models.conftest import KEY
from tests.support.model_server import INPUT_TOKENS, OUTPUT_TOKENS, Answer, Hang, Refuse, Say, Use, first, play

_PATH = {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}
WRITE = ToolOffer("write_file", "Writes a file.", {**_PATH, "required": ["path", "content"]})
_GO = [Message("user", "Go")]


class Verdict(BaseModel):
    good: bool


def _answer(model: PydanticAiModel, timeout_ms: int = 20_000) -> Any:
    return asyncio.run(model.answer("You judge.", "Is it good?", Verdict, timeout_ms=timeout_ms))


def _turn(model: PydanticAiModel, messages: list[Message] = _GO, timeout_ms: int = 20_000, **options: Any) -> Any:
    return asyncio.run(model.converse("You work.", messages, [WRITE], timeout_ms=timeout_ms, **options))


@pytest.mark.parametrize("structured", ["tool", "native", "prompted"])
def test_an_answer_has_the_shape_that_was_asked_for(model, structured) -> None:
    """In each of the three ways of asking, with tokens and a price."""
    judge = model(play(Answer({"good": True})), structured)
    answer = _answer(judge)
    assert (answer.value, answer.model) == (Verdict(good=True), judge.name)
    assert (answer.usage.calls, answer.usage.input_tokens, answer.usage.output_tokens) == (
        1,
        INPUT_TOKENS,
        OUTPUT_TOKENS,
    )
    assert 0 < answer.usage.cost_usd < 0.01


def test_the_tool_that_must_be_called_is_named(model, server) -> None:
    """A server that only knows "any tool" would not hold a small model to the schema."""
    _answer(model(play(Answer({"good": True}))))
    (request,) = server.requests("given")
    assert request.body["tool_choice"] in (
        {"type": "function", "function": {"name": "final_result"}},
        {"type": "tool", "name": "final_result"},
    )


def test_an_invalid_answer_is_sent_back_and_every_call_is_counted(model, server) -> None:
    """The second request holds what was wrong with the first answer."""
    answer = _answer(model(first(1, Answer({"good": "perhaps"}), play(Answer({"good": False})))))
    assert (answer.value.good, answer.usage.calls) == (False, 2)
    assert "valid boolean" in str(server.requests("given")[1].body["messages"])


def test_repair_is_bounded(model, server) -> None:
    """Three answers, then a failure that says so, and what they cost."""
    with pytest.raises(ModelFailed) as caught:
        _answer(model(play(Answer({"good": "perhaps"}))))
    assert (caught.value.kind, len(server.requests("given"))) == (ModelFault.BAD_RESPONSE, 3)
    used = caught.value.usage
    assert (used["calls"], used["input_tokens"], used["output_tokens"]) == (3, 3 * INPUT_TOKENS, 3 * OUTPUT_TOKENS)


def test_a_repair_that_the_provider_interrupts_is_counted_with_the_next_try(model, server) -> None:
    """An invalid answer, a provider that is overloaded, and the whole question again: two answers came."""
    turns = iter((Answer({"good": "perhaps"}), Refuse("overloaded", retry_after=0), Answer({"good": True})))
    answer = _answer(model(lambda _ask: next(turns)))
    assert (len(server.requests("given")), answer.usage.calls, answer.usage.input_tokens) == (3, 2, 2 * INPUT_TOKENS)


def test_a_time_limit_keeps_the_count_of_what_came_before_it(model) -> None:
    """The invalid answer was paid for; the one that never came was not."""
    with pytest.raises(ModelFailed) as caught:
        _answer(model(first(1, Answer({"good": "perhaps"}), play(Hang()))), timeout_ms=1_500)
    assert (caught.value.kind, caught.value.usage["calls"]) == (ModelFault.TIMEOUT, 1)


def test_a_message_names_the_limit_that_was_set(model) -> None:
    """Not what an earlier try and a wait had left of it."""
    turns = first(1, Refuse("overloaded", retry_after=0), play(Hang()))
    with pytest.raises(ModelFailed, match="no answer within 900ms"):
        _answer(model(turns), timeout_ms=900)


def test_words_that_are_none_are_counted(model) -> None:
    """A turn that says and calls nothing fails, and was paid for."""
    with pytest.raises(ModelFailed) as caught:
        _turn(model(play(Say(""))))
    assert (caught.value.kind, caught.value.usage["input_tokens"]) == (ModelFault.BAD_RESPONSE, INPUT_TOKENS)


def test_a_conversation_goes_through_tools_and_is_streamed(model, server) -> None:
    """A call, its answer, and words that are heard while they come."""
    worker = model(play(Use("write", path="a", content="b"), Say("It is written.")))
    called = _turn(worker)
    (call,) = called.message.calls
    assert (call.name, dict(call.arguments)) == ("write_file", {"path": "a", "content": "b"})
    heard: list[str] = []
    ended = _turn(worker, [*_GO, called.message, Message("tool", "wrote a", call_id=call.id)], on_text=heard.append)
    assert (ended.message, "".join(heard)) == (Message("assistant", "It is written."), "It is written.")
    request = server.requests("given")[-1]
    assert (request.ask.stream, request.ask.system, request.ask.results) == (True, "You work.", ("wrote a",))


@pytest.mark.parametrize(
    ("scenario", "kind", "requests"),
    [
        ("rate-limited", ModelFault.RATE_LIMIT, 1),
        ("auth-failed", ModelFault.AUTH, 1),
        ("context-full", ModelFault.CONTEXT_FULL, 1),
        ("hang", ModelFault.TIMEOUT, 1),
    ],
)
def test_each_fault_has_its_kind(model, server, scenario, kind, requests) -> None:
    """A wait that is longer than the call is not waited for."""
    with pytest.raises(ModelFailed) as caught:
        _turn(model(scenario), timeout_ms=2_000)
    assert (caught.value.kind, len(server.requests(scenario))) == (kind, requests)
    assert caught.value.retry_after_ms == (7000 if kind is ModelFault.RATE_LIMIT else None)


def test_what_passes_is_asked_again(model, server, monkeypatch) -> None:
    """A broken stream and a short rate limit cost a moment, not the conversation."""
    monkeypatch.setattr("harness.model.limits.MODEL_WAIT_MS", 1)
    assert _turn(model("broken-stream-once")).message.text == "Done."
    assert _turn(model(first(1, Refuse("rate_limited", 0), play(Say("at last"))))).message.text == "at last"
    with pytest.raises(ModelFailed) as caught:
        _turn(model("broken-stream"))
    assert (caught.value.kind, len(server.requests("broken-stream"))) == (ModelFault.UNREACHABLE, 3)


def test_a_server_that_is_not_there_is_unreachable(monkeypatch) -> None:
    monkeypatch.setattr("harness.model.limits.MODEL_WAIT_MS", 1)
    with pytest.raises(ModelFailed) as caught:
        _turn(PydanticAiModel(Access("openai", "any", "http://127.0.0.1:9/v1", KEY)))
    assert (caught.value.kind, caught.value.hint) == (
        ModelFault.UNREACHABLE,
        "check the network and `model.base_url`",
    )


def test_a_model_that_says_nothing_is_a_bad_response(model) -> None:
    with pytest.raises(ModelFailed) as caught:
        _turn(model(play(Say(""))))
    assert caught.value.kind is ModelFault.BAD_RESPONSE


def test_cancelling_ends_the_call(model, server) -> None:
    """Nothing waits for a server that hangs."""

    async def cancelled() -> None:
        call = asyncio.create_task(model("hang").converse("", _GO, [], timeout_ms=600_000))
        while not server.requests("hang"):  # noqa: ASYNC110 - the server is a thread without an event to wait for
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancelled())


def test_an_unknown_model_has_no_price(server) -> None:
    """None is said, never 0."""
    access = Access("openai", "a-model-of-one's-own", server.url("text") + "/v1")
    assert _turn(PydanticAiModel(access)).usage.cost_usd is None


class Told(BaseModel):
    answer: str


def test_a_text_answer_is_streamed(model, server) -> None:
    """Asked for in plain words, without a tool; the request asks for a stream, and what is told adds up to the answer."""
    said = "A long answer with many words in it. " * 20
    heard: list[str] = []
    told = model(play(Say(said)))
    answer = asyncio.run(told.answer("You sum up.", "What was done?", Told, timeout_ms=20_000, on_text=heard.append))
    assert (answer.value.answer, "".join(heard), answer.usage.calls) == (said, said, 1)
    (request,) = server.requests("given")
    assert (request.ask.stream, request.ask.tools) == (True, ())
