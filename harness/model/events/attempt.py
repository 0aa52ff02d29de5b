"""Facts about the work on one step: workspaces, processes, tools, snapshots, checks."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from harness.model.events.fact import StepFact, line


class WorkspacePreparing(StepFact):
    """Intent: a worktree is about to be made at `path`."""

    type = "workspace.preparing"
    path: str
    start_point: str
    purpose: str
    workspace: str = "checkout"
    why: str = ""

    @property
    def summary(self) -> str:
        return f"step {self.task} prepares a workspace ({self.purpose})"


class WorkspaceRemoved(StepFact):
    type = "workspace.removed"
    announces = False
    path: str

    @property
    def summary(self) -> str:
        return f"step {self.task} workspace removed"


class WorkspaceKept(StepFact):
    """No snapshot could be taken: the files of the workspace stay in the folder `path` until a person removes it."""

    type = "workspace.kept"
    path: str
    why: str

    @property
    def summary(self) -> str:
        return f"step {self.task} files kept in {self.path}: {line(self.why)}"


class ProcessStarted(StepFact):
    """Identifies a child process beyond its pid, so that an orphan can be ended and a stranger never is."""

    type = "attempt.process_started"
    attempt: int
    pid: int
    start_time: str
    boot_id: str
    sandbox: str
    purpose: str

    @property
    def summary(self) -> str:
        return f"step {self.task} process {self.pid} ({self.purpose}, {self.sandbox})"


class AttemptFinished(StepFact):
    type = "attempt.finished"
    attempt: int
    ok: bool
    reason: str | None
    message: str
    duration_ms: int
    exit_code: int | None = None
    log: str | None = None
    retry_in_ms: int | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    account: str = ""
    criteria: list[dict[str, Any]] = field(default_factory=list)
    subplan: dict[str, Any] | None = None  # the agent asks that the step be split instead

    @property
    def summary(self) -> str:
        asked = f"asks for {len(self.subplan.get('steps', ()))} smaller steps" if self.subplan else ""
        outcome = "done" if self.ok else asked or f"{self.reason}: {line(self.message)}"
        return f"step {self.task} attempt {self.attempt}: {outcome}"


class SnapshotTaken(StepFact):
    type = "snapshot.taken"
    announces = False
    attempt: int
    commit: str
    tree: str
    changed_paths: list[str]
    kinds: list[str] = field(default_factory=list)
    changed_total: int = 0
    agent_commits: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    refused: str = ""
    ignored: list[str] = field(default_factory=list)
    ignored_total: int = 0

    @property
    def summary(self) -> str:
        return f"step {self.task} snapshot {self.commit[:12]} ({len(self.changed_paths)} paths)"


class WorkKept(StepFact):
    type = "work.kept"
    ref: str
    commit: str
    why: str

    @property
    def summary(self) -> str:
        return f"step {self.task} work kept at {self.ref}"


class ToolCalled(StepFact):
    type = "tool.called"
    announces = False
    tool: str
    arguments: dict[str, Any]
    ok: bool
    message: str

    @property
    def summary(self) -> str:
        return f"step {self.task} {self.tool}: {'ok' if self.ok else line(self.message)}"


class ToolDenied(StepFact):
    type = "tool.denied"
    announces = False
    tool: str
    arguments: dict[str, Any]
    message: str

    @property
    def summary(self) -> str:
        return f"step {self.task} denied {self.tool}: {line(self.message)}"


class OwnershipExcepted(StepFact):
    type = "ownership.exception_granted"
    path: str
    reason: str

    @property
    def summary(self) -> str:
        return f"step {self.task} may change {self.path}: {line(self.reason)}"


class CheckFinished(StepFact):
    """One check on one tree; `where` is workspace, merged or base."""

    type = "check.finished"
    announces = False
    command: str | list[str]
    where: str
    tree: str
    ok: bool
    exit_code: int | None
    duration_ms: int
    output_tail: str
    failed_on_base: bool | None = None

    @property
    def summary(self) -> str:
        outcome = "passed" if self.ok else f"failed (exit {self.exit_code})"
        return f"step {self.task} check on {self.where} {outcome}"


class IntegrationStarted(StepFact):
    """Intent: the integration ref is about to move from `previous` to `merge_commit`."""

    type = "integration.started"
    previous: str
    merge_commit: str
    tree: str

    @property
    def summary(self) -> str:
        return f"step {self.task} integrates onto {self.previous[:12]}"
