"""The model that says what a script says: for tests, demos and runs that must repeat exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from harness.errors import ModelFailed, ModelFault
from harness.model import limits
from harness.model.late import dataclass
from harness.models import script
from harness.models.script import Entry
from harness.ports import Answer, Message, ToolCall, ToolOffer, Turn, Usage

Shape = TypeVar("Shape")


@dataclass(frozen=True, slots=True)
class _Question:
    """A call, as entries are matched with it; `shape` is None in a conversation."""

    text: str
    shape: str | None = None
    turn: int = 0

    def fits(self, entry: Entry) -> bool:
        if entry.fail is None and entry.speaks is not (self.shape is None):
            return False
        if entry.shape is not None and entry.shape != self.shape:
            return False
        if entry.turn is not None and (self.shape is not None or entry.turn != self.turn):
            return False
        return all(text in self.text for text in entry.texts)


class ScriptedModel:
    """Gives the first entry that fits and is not used up. A question that no entry fits is a ModelFailed."""

    def __init__(self, entries: Sequence[Entry], name: str = "scripted") -> None:
        self.name = name
        self._entries = list(entries)
        self._served = [0] * len(self._entries)

    @classmethod
    def from_file(cls, path: Path) -> ScriptedModel:
        """Raises ConfigInvalid when the file is no script."""
        return cls(script.load(path), f"scripted:{path.name}")

    @property
    def leftovers(self) -> list[Entry]:
        """Entries that were not served as often as the script says."""
        return [entry for entry, served in zip(self._entries, self._served, strict=True) if served < entry.times]

    async def answer(
        self,
        system: str,
        prompt: str,
        shape: type[Shape],
        *,
        timeout_ms: int,  # noqa: ARG002 - a script takes no time
        on_text: Callable[[str], None] | None = None,
    ) -> Answer[Shape]:
        """Invalid answers are passed over as a model would be asked to repair them, a bounded number of times."""
        question = _Question(f"{system}\n{prompt}", getattr(shape, "__name__", str(shape)))
        usage = Usage()
        adapter = TypeAdapter(shape)
        for _ in range(limits.MODEL_REPAIRS + 1):
            try:
                entry = self._take(question)
            except ModelFailed as error:
                error.usage = asdict(usage)
                raise
            usage += entry.usage.usage()
            try:
                value = adapter.validate_json(to_json(entry.answer))
            except ValidationError as error:
                problem = error.errors()[0]["msg"]
                continue
            if on_text is not None:
                for line in str(getattr(value, "answer", "")).splitlines(keepends=True):
                    on_text(line)
            return Answer(value, usage, self.name)
        failed = ModelFailed(f"{self.name}: the answer is no {question.shape}: {problem}", kind=ModelFault.BAD_RESPONSE)
        failed.usage = asdict(usage)
        raise failed

    async def converse(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolOffer],  # noqa: ARG002 - a script may call what was not offered, as a model may
        *,
        timeout_ms: int,  # noqa: ARG002 - as above
        on_text: Callable[[str], None] | None = None,
    ) -> Turn:
        """The next turn; what the user said counts for `contains`, not what tools answered."""
        turn = sum(message.role == "assistant" for message in messages)
        asked = [message.text for message in messages if message.role == "user"]
        entry = self._take(_Question("\n".join([system, *asked]), turn=turn))
        if entry.say and on_text is not None:
            on_text(entry.say)
        calls = tuple(
            ToolCall(f"call-{turn}-{number}", call.tool, call.arguments)
            for number, call in enumerate(entry.calls or [])
        )
        return Turn(Message("assistant", entry.say or "", calls), entry.usage.usage(), self.name)

    def _take(self, question: _Question) -> Entry:
        for number, entry in enumerate(self._entries):
            if question.fits(entry) and (not entry.times or self._served[number] < entry.times):
                self._served[number] += 1
                if entry.fail is not None:
                    fault = entry.fail
                    raise ModelFailed(fault.message, kind=fault.kind, retry_after_ms=fault.retry_after_ms)
                return entry
        what = f"turn {question.turn} of a conversation" if question.shape is None else f"a {question.shape}"
        raise ModelFailed(
            f"{self.name} has no answer left for {what}",
            kind=ModelFault.BAD_RESPONSE,
            hint="add an entry to the script, or correct its conditions",
        )
