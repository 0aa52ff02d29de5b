"""Facts of decomposition: whether a step is split, the nested run that it becomes, and how that came back."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from harness.model.events.fact import Fact


class _AboutParent(Fact):
    task: str

    @property
    def task_id(self) -> str:
        return self.task


class ComplexityAnalyzed(_AboutParent):
    """`execute` or `spawn`, and why; `recovery` when the reason is a failure."""

    type = "complexity_analyzed"
    decision: str
    reasons: list[str]
    recommended_tools: list[str] = field(default_factory=list)
    recovery: bool = False

    @property
    def summary(self) -> str:
        return f"step {self.task}: {self.decision}: {'; '.join(self.reasons)[:160]}"


class SubagentSpawned(_AboutParent):
    """Intent: the task becomes the parent of a nested run, `child_run`, of this plan."""

    type = "subagent_spawned"
    subagent_id: str
    parent_task_id: str
    tasks_count: int
    child_run: str
    persona: str
    plan: dict[str, Any]

    @property
    def summary(self) -> str:
        return f"step {self.task} becomes {self.tasks_count} tasks in run {self.child_run}"


class SubagentReturned(_AboutParent):
    """The nested run has its outcome; `head` is what was integrated in it, `reason` why the step fails with it."""

    type = "subagent_returned"
    child_run: str
    status: str
    head: str
    message: str
    usage: dict[str, Any] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)  # what its model calls used, as in the JSON of a run
    reason: str | None = None  # None: `nested_failed`, where the run did not succeed

    @property
    def summary(self) -> str:
        return f"step {self.task}: run {self.child_run} {self.status}"
