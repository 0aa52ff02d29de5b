"""What every fact is."""

from __future__ import annotations

from typing import Any, ClassVar

from harness.model.value import Value


class Fact(Value):
    """One thing that happened; `summary` draws the condensed timeline, the fields are the expansion."""

    type: ClassVar[str]
    announces: ClassVar[bool] = True
    """False for an outcome that nothing acts on before another fact: it may become durable together with that one."""

    @property
    def summary(self) -> str:
        return self.type

    @property
    def task_id(self) -> str | None:
        return None

    def payload(self) -> dict[str, Any]:
        return dict(vars(self))


class StepFact(Fact):
    """A fact about one sub-agent."""

    sub_agent_id: str
    step_idx: int
    task: str

    @property
    def task_id(self) -> str:
        return self.task


def line(text: str) -> str:
    """The text on one line, cut where a timeline would be."""
    return " ".join(text.split())[:160]
