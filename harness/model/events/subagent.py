"""Facts of a sub-agent's life, with the names that people watch for."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from harness.model.events.fact import StepFact, line


class SubagentCreated(StepFact):
    type = "agent.subagent_created"
    title: str
    step_id: str | None
    contract: dict[str, Any]
    origin: str | None = None  # of a retried step: what it starts from instead of the run's base

    @property
    def summary(self) -> str:
        return f"step {self.task} created: {self.title}"


class SubagentStarted(StepFact):
    type = "agent.subagent_started"
    announces = False
    start_point: str
    branch: str

    @property
    def summary(self) -> str:
        return f"step {self.task} started on {self.start_point[:12]}"


class SubagentAttempt(StepFact):
    type = "agent.subagent_attempt"
    announces = False  # whatever the attempt does is announced by itself: a process, a tool, a model's turn
    attempt: int
    agent: str
    sandbox: str

    @property
    def summary(self) -> str:
        return f"step {self.task} attempt {self.attempt} by {self.agent}"


class SubagentWaitingForMerge(StepFact):
    type = "agent.subagent_waiting_for_merge"
    announces = False
    commit: str
    tree: str
    changed_paths: list[str]
    report: str

    @property
    def summary(self) -> str:
        return f"step {self.task} waits for merge ({len(self.changed_paths)} paths)"


class SubagentFailed(StepFact):
    type = "agent.subagent_failed"
    reason: str
    message: str
    paths: list[str] = field(default_factory=list)
    kept_ref: str | None = None
    commit: str | None = None

    @property
    def summary(self) -> str:
        return f"step {self.task} failed: {self.reason}: {line(self.message)}"


class WorktreeMerged(StepFact):
    type = "agent.worktree_merged"
    announces = False
    commit: str
    merge_commit: str
    previous: str
    tree: str

    @property
    def summary(self) -> str:
        return f"step {self.task} merged as {self.merge_commit[:12]}"


class IntegrationFailed(StepFact):
    """The child parked, but its work could not be integrated: that is the child's failure."""

    type = "agent.integration_failed"
    reason: str
    message: str
    paths: list[str] = field(default_factory=list)
    conflicts: list[dict[str, str]] = field(default_factory=list)
    kept_ref: str | None = None

    @property
    def summary(self) -> str:
        return f"step {self.task} not integrated: {self.reason}: {line(self.message)}"


class SubagentClosed(StepFact):
    type = "agent.subagent_closed"
    announces = False
    final_status: str
    close_reason: str

    @property
    def summary(self) -> str:
        return f"step {self.task} closed as {self.final_status}: {self.close_reason}"
