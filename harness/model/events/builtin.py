"""Facts about the built-in agent: what each turn of its model cost, whatever comes of the attempt."""

from __future__ import annotations

from harness.model.events.fact import StepFact


class ModelSpoke(StepFact):
    type = "model.spoke"
    attempt: int
    turn: int
    model: str
    calls: list[str]
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    duration_ms: int

    @property
    def summary(self) -> str:
        wants = f"calls {', '.join(self.calls)}" if self.calls else "says that it is done"
        return f"step {self.task} turn {self.turn}: {self.model} {wants}"


class ContextCompacted(StepFact):
    """Old tool output was dropped from the conversation; sizes are estimates in tokens."""

    type = "model.context_compacted"
    attempt: int
    before: int
    after: int

    @property
    def summary(self) -> str:
        return f"step {self.task} conversation compacted from {self.before} to {self.after} tokens"
