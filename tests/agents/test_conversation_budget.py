"""A conversation stays within its budget, and forgets the least useful first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.agents.conversation import Conversation, tokens
from harness.model import limits
from harness.ports import Message, ToolCall

_TASK = Message("user", "the task")


def _turn(number: int, output: str, argument: str = "a") -> list[Message]:
    call = ToolCall(f"c{number}", "read_file", {"path": argument})
    return [Message("assistant", f"turn {number}", (call,)), Message("tool", output, call_id=f"c{number}")]


def _talk(budget: int, outputs: list[str]) -> Conversation:
    talk = Conversation(budget, [_TASK])
    for number, output in enumerate(outputs):
        talk.add(*_turn(number, output))
    return talk


def test_a_short_conversation_is_left_alone() -> None:
    talk = _talk(10_000, ["short"] * 10)
    before = list(talk.messages)
    assert not talk.compact()
    assert talk.messages == before


def test_old_output_goes_first_and_the_latest_stays() -> None:
    """Every turn is still there; only what old tools said is not."""
    talk = _talk(6_000, ["x" * 4_000] * 10)
    assert talk.compact()
    outputs = [message.text for message in talk.messages if message.role == "tool"]
    kept = [text for text in outputs if text == "x" * 4_000]
    assert (len(outputs), talk.size <= 6_000) == (10, True)
    assert outputs[-len(kept) :] == kept
    assert outputs[0].startswith("[output left out")


def test_long_arguments_of_old_calls_go_too() -> None:
    talk = Conversation(4_000, [_TASK])
    for number in range(10):
        talk.add(*_turn(number, "ok", "y" * 4_000))
    talk.compact()
    assert talk.messages[1].calls[0].arguments == {"path": "<4000 characters>"}


def test_turns_are_forgotten_when_nothing_else_helps() -> None:
    """The task stays, and no answer of a tool is left without its call."""
    talk = _talk(100, ["z" * 200] * 40)
    talk.compact()
    assert talk.messages[0] == _TASK
    assert len(talk.messages) <= limits.CONTEXT_KEPT + 2


@given(st.lists(st.integers(0, 20_000), max_size=30), st.integers(1_000, 50_000))
def test_compaction_keeps_a_conversation_whole(sizes, budget) -> None:
    """Whatever was said: the first message stays, every answer has its call, and a second compaction changes nothing."""
    talk = _talk(budget, ["o" * size for size in sizes])
    talk.compact()
    called = {call.id for message in talk.messages for call in message.calls}
    answered = {message.call_id for message in talk.messages if message.role == "tool"}
    assert talk.messages[0] == _TASK
    assert answered == called
    again = list(talk.messages)
    assert not talk.compact()
    assert talk.messages == again
    assert talk.size == sum(map(tokens, talk.messages))
