"""A conversation with a model that stays within a budget of tokens: old tool output goes first, then old turns."""

from __future__ import annotations

from dataclasses import field, replace

from harness.model import limits
from harness.model.late import dataclass
from harness.ports import Message

_CHARS_PER_TOKEN = 4
_DROPPED = "[output left out to save room; call the tool again if it is needed]"
_SHORT = len(_DROPPED)


def tokens(message: Message) -> int:
    """An estimate: providers count differently, and before the answer comes nobody knows."""
    chars = len(message.text) + sum(len(call.name) + len(str(call.arguments)) for call in message.calls)
    return chars // _CHARS_PER_TOKEN + 4


@dataclass(slots=True)
class Conversation:
    """`budget` is in tokens, the first message included. Compaction depends on the messages alone, never on time."""

    budget: int
    messages: list[Message] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(map(tokens, self.messages))

    def add(self, *messages: Message) -> None:
        self.messages.extend(messages)

    def compact(self, budget: int | None = None) -> bool:
        """Brings the conversation under the budget as far as it can; whether anything was dropped."""
        budget = self.budget if budget is None else budget
        before = self.size
        for position in range(len(self.messages) - limits.CONTEXT_KEPT):
            if self.size <= budget:
                break
            self._shorten(position)
        while self.size > budget and len(self.messages) > limits.CONTEXT_KEPT + 1 and self._forget_turn():
            pass
        return self.size < before

    def _shorten(self, position: int) -> None:
        """Takes the output of a tool, and the long arguments of a call, out of an old message."""
        message = self.messages[position]
        if message.role == "tool" and len(message.text) > _SHORT:
            self.messages[position] = replace(message, text=_DROPPED)
        elif message.calls:
            calls = tuple(
                replace(call, arguments={name: _shortened(value) for name, value in call.arguments.items()})
                for call in message.calls
            )
            self.messages[position] = replace(message, calls=calls)

    def _forget_turn(self) -> bool:
        """Drops the oldest turn after the task: what the model said, and the answers of its tools with it."""
        end = 2
        while end < len(self.messages) and self.messages[end].role == "tool":
            end += 1
        if end >= len(self.messages) - 1:
            return False
        del self.messages[1:end]
        return True


def _shortened(value: object) -> object:
    return f"<{len(value)} characters>" if isinstance(value, str) and len(value) > limits.TOOL_ARGUMENT_CHARS else value
