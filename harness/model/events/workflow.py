"""Facts of the orchestrator: what it decided and why, and how tasks went, with the names that people watch for.

They stand beside a sub-agent's own sequence: `task` says which task they are about, and no sub-agent is named.
"""

from __future__ import annotations

from harness.model.events.fact import Fact, line


class _WorkflowFact(Fact):
    task: str | None

    @property
    def task_id(self) -> str | None:
        return self.task


class RoutingDecision(_WorkflowFact):
    """The router chose a node; a resume carries the decision out and does not ask again.

    `step` counts the decisions of this run, `depth` its nesting. With a `termination_reason` the decision is a safe stop:
    a limit of the run was reached, and nothing new is started.
    """

    type = "routing_decision"
    announces = False
    chosen_node: str
    reason: str
    persona: str
    decision_kind: str = "NODE"
    depth: int = 0
    step: int = 0
    termination_reason: str | None = None

    @property
    def summary(self) -> str:
        return f"{f'step {self.task}' if self.task else 'run'} to {self.chosen_node}: {line(self.reason)}"


class TaskStarted(_WorkflowFact):
    type = "task_started"
    announces = False
    node: str
    persona: str

    @property
    def summary(self) -> str:
        return f"step {self.task} taken up by {self.node}"


class TaskSucceeded(_WorkflowFact):
    type = "task_succeeded"
    announces = False
    result_summary: str
    duration_ms: int

    @property
    def summary(self) -> str:
        return f"step {self.task} succeeded: {line(self.result_summary)}"


class TaskFailed(_WorkflowFact):
    """One failure of a task; `final` when the task itself has failed with it."""

    type = "task_failed"
    error: str
    fail_count: int
    final: bool

    @property
    def summary(self) -> str:
        return f"step {self.task} failure {self.fail_count}: {self.error}"


class TaskRetryScheduled(_WorkflowFact):
    """The task is tried again, not before `next_attempt_at`."""

    type = "task_retry_scheduled"
    error: str
    fail_count: int
    pause_ms: int
    next_attempt_at: str

    @property
    def summary(self) -> str:
        return f"step {self.task} again in {self.pause_ms} ms after {self.error}"


class WorkflowFinalized(Fact):
    type = "workflow_finalized"
    status: str
    final_response_length: int
    final_response: str = ""

    @property
    def summary(self) -> str:
        return f"workflow {self.status}"


class WorkflowCheckpoint(Fact):
    type = "workflow_checkpoint"
    path: str

    @property
    def summary(self) -> str:
        return f"checkpoint at {self.path}"
