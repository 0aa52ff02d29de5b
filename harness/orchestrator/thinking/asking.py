"""One question to a model: in time, remembered as a fact, and never paid for twice."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from harness.errors import ModelFailed, ModelFault
from harness.model import duration, limits
from harness.model.events import Envelope, Fact, ModelAnswered, ModelGaveUp, canonical
from harness.model.late import dataclass
from harness.orchestrator.thinking.prompts import Rendered
from harness.ports import Answer, Model, Usage

Shape = TypeVar("Shape", bound=BaseModel)


def remembered(envelopes: Iterable[Envelope]) -> dict[str, ModelAnswered]:
    """The answers that a run's log holds, by the digest of their questions."""
    facts = (envelope.fact() for envelope in envelopes if envelope.type == ModelAnswered.type)
    return {fact.question: fact for fact in facts if isinstance(fact, ModelAnswered)}


@dataclass(frozen=True, slots=True)
class Asking:
    """A model, where its answers are written down, and what it has answered before; `task` is what it is asked about.

    `timeout_ms` binds every question; `hears` is told an answer in plain words while the model gives it.
    """

    model: Model
    record: Callable[[Fact], object] = lambda _fact: None
    memory: Mapping[str, ModelAnswered] = field(default_factory=dict)
    task: str | None = None
    timeout_ms: int = limits.MODEL_CALL_MS
    hears: Callable[[str], None] | None = None

    async def ask(self, question: Rendered, shape: type[Shape], *, aloud: bool = False) -> Answer[Shape]:
        """A valid answer, durably recorded before it is used; raises ModelFailed. One from memory costs nothing.

        `aloud`: the shape has one text, `answer`, which the model says in plain words.
        """
        digest = _digest(question, shape)
        known = self._recalled(digest, shape)
        if known is not None:
            return known
        began = time.monotonic()
        try:
            answer = await self._asked(question, shape, aloud=aloud)
        except ModelFailed as error:
            about = {**self._about(question, digest, began), **error.usage}
            self.record(ModelGaveUp(**about, kind=error.kind.value, message=error.message))
            raise
        about = {**self._about(question, digest, began), **asdict(answer.usage)}
        self.record(ModelAnswered(**about, answer=answer.value.model_dump(mode="json")))
        return answer

    async def _asked(self, question: Rendered, shape: type[Shape], *, aloud: bool) -> Answer[Shape]:
        timeout_ms = self.timeout_ms
        told: dict[str, Any] = {"on_text": self.hears or (lambda _text: None)} if aloud else {}
        try:
            # A model that keeps to its time says what it used until then; the others are ended a moment later.
            async with asyncio.timeout((timeout_ms + limits.MODEL_GRACE_MS) / 1000):
                return await self.model.answer(question.system, question.prompt, shape, timeout_ms=timeout_ms, **told)
        except TimeoutError as error:
            raise ModelFailed(
                f"{self.model.name} did not answer within {duration.text(timeout_ms)}",
                kind=ModelFault.TIMEOUT,
                hint="raise `model.timeout`",
            ) from error

    def _recalled(self, digest: str, shape: type[Shape]) -> Answer[Shape] | None:
        fact = self.memory.get(digest)
        if fact is None:
            return None
        try:
            return Answer(shape.model_validate(fact.answer), Usage(), fact.model)
        except ValidationError:  # another version of the harness asked for another shape
            return None

    def _about(self, question: Rendered, digest: str, began: float) -> dict[str, Any]:
        return {
            "purpose": question.name,
            "version": question.version,
            "question": digest,
            "model": self.model.name,
            "duration_ms": round((time.monotonic() - began) * 1000),
            "task": self.task,
        }


def _digest(question: Rendered, shape: type[BaseModel]) -> str:
    asked = [question.name, question.version, question.system, question.prompt, shape.__name__]
    return hashlib.sha256(canonical(asked).encode()).hexdigest()


def total(parts: Iterable[Usage]) -> Usage:
    """Together; one unknown cost makes the sum unknown."""
    used = list(parts)
    costs = [part.cost_usd for part in used if part.calls]
    return Usage(
        calls=sum(part.calls for part in used),
        input_tokens=sum(part.input_tokens for part in used),
        output_tokens=sum(part.output_tokens for part in used),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )
