"""Facts of a run that stops for a person: what it waits for, and what the person said."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from harness.model.events.fact import Fact, StepFact, line


class IntegrationRefused(StepFact):
    """The parked work cannot be integrated as it is; the error policy decides what becomes of it."""

    type = "integration.refused"
    reason: str
    message: str
    paths: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        return f"step {self.task} cannot be integrated as it is: {self.reason}: {line(self.message)}"


class _AboutTask(Fact):
    task: str

    @property
    def task_id(self) -> str:
        return self.task


class TaskEscalated(_AboutTask):
    """A person decides: `orchestrix approve` or `orchestrix reject`."""

    type = "task_escalated"
    error: str
    message: str

    @property
    def summary(self) -> str:
        return f"step {self.task} waits for a person: {self.error}: {line(self.message)}"


class TaskApproved(_AboutTask):
    type = "task_approved"
    note: str

    @property
    def summary(self) -> str:
        return f"step {self.task} approved: one more try"


class TaskRejected(_AboutTask):
    type = "task_rejected"
    note: str

    @property
    def summary(self) -> str:
        return f"step {self.task} rejected"


class RunWaiting(Fact):
    """The coordinator stopped: nothing can go on before a person decides (`approval`) or allows more (`budget`)."""

    type = "run.waiting"
    cause: str
    message: str
    tasks: list[str]

    @property
    def summary(self) -> str:
        return f"waiting ({self.cause}): {line(self.message)}"


class BudgetChanged(Fact):
    """What the run may use from here on; names that are not listed stay as they were."""

    type = "run.budget_changed"
    budget: dict[str, Any]

    @property
    def summary(self) -> str:
        return "budget: " + ", ".join(f"{name} {value}" for name, value in self.budget.items())
