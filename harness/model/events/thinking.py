"""Facts about what a model was asked: an answer that was paid for is never asked for again."""

from __future__ import annotations

from typing import Any

from harness.model.events.fact import Fact, line


class _Asked(Fact):
    """`question` is the digest of everything that was sent; `task` is the step that it was about, if it was one.

    The counts are of every answer that came, also of those that were no valid ones.
    """

    purpose: str
    version: int
    question: str
    model: str
    duration_ms: int
    task: str | None

    @property
    def task_id(self) -> str | None:
        return self.task


class ModelAnswered(_Asked):
    type = "model.answered"
    answer: dict[str, Any]
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None

    @property
    def summary(self) -> str:
        return f"{self.model} answered ({self.purpose}, {self.input_tokens} + {self.output_tokens} tokens)"


class ModelGaveUp(_Asked):
    type = "model.failed"
    kind: str
    message: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None

    @property
    def summary(self) -> str:
        return f"{self.model} did not answer ({self.purpose}): {self.kind}: {line(self.message)}"
