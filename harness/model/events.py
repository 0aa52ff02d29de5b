"""Every fact that the log can hold: a closed union, past tense, one class for one fact. Changes only add.

A fact becomes an envelope when the store seals it: `seq` is gap-free for each run and `hash` covers the envelope
and the hash before it, so that an edited, removed or reordered line is found.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from harness.model.ids import RunId
from harness.model.value import Value

GENESIS = "0" * 64
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Fact(Value):
    """One thing that happened; `summary` draws the condensed timeline, the fields are the expansion."""

    type: ClassVar[str]

    @property
    def summary(self) -> str:
        return self.type

    @property
    def task_id(self) -> str | None:
        return None

    def payload(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.fields}


class RunCreated(Fact):
    type = "run.created"
    goal: str
    plan: dict[str, Any]
    plan_path: str
    plan_digest: str
    base: str
    target: str | None
    integration_ref: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        return f"run of {len(self.plan['steps'])} steps on {self.base[:12]}"


class RunStarted(Fact):
    """A coordinator took the run; `resumed` when it is not the first."""

    type = "run.started"
    epoch: int
    holder: dict[str, Any]
    resumed: bool = False

    @property
    def summary(self) -> str:
        return f"{'resumed' if self.resumed else 'started'} by process {self.holder.get('pid')}"


class OverlapAllowed(Fact):
    type = "run.overlap_allowed"
    pairs: list[list[int]]

    @property
    def summary(self) -> str:
        return "overlapping ownership allowed: " + ", ".join(f"{a} and {b}" for a, b in self.pairs)


class PlanChangeAccepted(Fact):
    type = "run.plan_change_accepted"
    old_digest: str
    new_digest: str

    @property
    def summary(self) -> str:
        return f"changed plan file accepted ({self.new_digest[:12]})"


class RunCancelled(Fact):
    """The coordinator stopped on request; the run can be resumed."""

    type = "run.cancelled"
    cause: str

    @property
    def summary(self) -> str:
        return f"cancelled: {self.cause}"


class RunFinished(Fact):
    type = "run.finished"
    status: str
    exit_code: int
    head: str
    merged: int
    failed: int

    @property
    def summary(self) -> str:
        return f"{self.status}: {self.merged} merged, {self.failed} failed (exit {self.exit_code})"


class RunLanded(Fact):
    type = "run.landed"
    target: str
    old: str | None
    new: str

    @property
    def summary(self) -> str:
        return f"landed on {self.target} at {self.new[:12]}"


class ParentChanged(Fact):
    """The user's branches, index or files changed during the run; reported, not punished at a desk."""

    type = "parent_changed"
    what: list[str]
    during: list[str]

    @property
    def summary(self) -> str:
        return f"parent changed: {', '.join(self.what[:3])}"


class ParentTampered(Fact):
    """Hooks, config, attributes or the run's own refs changed; the harness did not do it."""

    type = "parent_tampered"
    what: list[str]
    during: list[str]

    @property
    def summary(self) -> str:
        return f"parent tampered with: {', '.join(self.what[:3])}"


class StepFact(Fact):
    """A fact about one sub-agent."""

    sub_agent_id: str
    step_idx: int
    task: str

    @property
    def task_id(self) -> str:
        return self.task


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
    start_point: str
    branch: str

    @property
    def summary(self) -> str:
        return f"step {self.task} started on {self.start_point[:12]}"


class SubagentAttempt(StepFact):
    type = "agent.subagent_attempt"
    attempt: int
    agent: str
    sandbox: str

    @property
    def summary(self) -> str:
        return f"step {self.task} attempt {self.attempt} by {self.agent}"


class SubagentWaitingForMerge(StepFact):
    type = "agent.subagent_waiting_for_merge"
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
        return f"step {self.task} failed: {self.reason}: {_line(self.message)}"


class WorktreeMerged(StepFact):
    type = "agent.worktree_merged"
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
        return f"step {self.task} not integrated: {self.reason}: {_line(self.message)}"


class SubagentClosed(StepFact):
    type = "agent.subagent_closed"
    final_status: str
    close_reason: str

    @property
    def summary(self) -> str:
        return f"step {self.task} closed as {self.final_status}: {self.close_reason}"


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
    path: str

    @property
    def summary(self) -> str:
        return f"step {self.task} workspace removed"


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

    @property
    def summary(self) -> str:
        outcome = "done" if self.ok else f"{self.reason}: {_line(self.message)}"
        return f"step {self.task} attempt {self.attempt}: {outcome}"


class SnapshotTaken(StepFact):
    type = "snapshot.taken"
    attempt: int
    commit: str
    tree: str
    changed_paths: list[str]
    kinds: list[str] = field(default_factory=list)
    changed_total: int = 0
    agent_commits: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

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
    tool: str
    arguments: dict[str, Any]
    ok: bool
    message: str

    @property
    def summary(self) -> str:
        return f"step {self.task} {self.tool}: {'ok' if self.ok else _line(self.message)}"


class ToolDenied(StepFact):
    type = "tool.denied"
    tool: str
    arguments: dict[str, Any]
    message: str

    @property
    def summary(self) -> str:
        return f"step {self.task} denied {self.tool}: {_line(self.message)}"


class OwnershipExcepted(StepFact):
    type = "ownership.exception_granted"
    path: str
    reason: str

    @property
    def summary(self) -> str:
        return f"step {self.task} may change {self.path}: {_line(self.reason)}"


class CheckFinished(StepFact):
    """One check on one tree; `where` is workspace, merged or base."""

    type = "check.finished"
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


def _line(text: str) -> str:
    return " ".join(text.split())[:160]


TYPES: dict[str, type[Fact]] = {
    cls.type: cls
    for cls in (
        RunCreated,
        RunStarted,
        OverlapAllowed,
        PlanChangeAccepted,
        RunCancelled,
        RunFinished,
        RunLanded,
        ParentChanged,
        ParentTampered,
        SubagentCreated,
        SubagentStarted,
        SubagentAttempt,
        SubagentWaitingForMerge,
        SubagentFailed,
        WorktreeMerged,
        IntegrationFailed,
        SubagentClosed,
        WorkspacePreparing,
        WorkspaceRemoved,
        ProcessStarted,
        AttemptFinished,
        SnapshotTaken,
        WorkKept,
        ToolCalled,
        ToolDenied,
        OwnershipExcepted,
        CheckFinished,
        IntegrationStarted,
    )
}


@dataclass(frozen=True, slots=True)
class Envelope:
    """A sealed fact; field order is the order on the wire."""

    id: str
    run_id: str
    seq: int
    type: str
    ts: str
    task_id: str | None
    trace_id: str
    summary: str
    payload: dict[str, Any]
    prev_hash: str
    hash: str

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def fact(self) -> Fact | None:
        """The typed fact; None for a type that a newer version wrote."""
        cls = TYPES.get(self.type)
        if cls is None:
            return None
        return cls(**{name: value for name, value in self.payload.items() if name in cls.fields})


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, UTF-8.

    What UTF-8 cannot hold (half a surrogate pair, as in a file name of another encoding) is spelled out.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda found: f"\\\\u{ord(found[0]):04x}", text)


def digest(envelope: dict[str, Any]) -> str:
    """SHA-256 over the canonical JSON of every field but `hash`."""
    body = {name: value for name, value in envelope.items() if name != "hash"}
    return hashlib.sha256(canonical(body).encode("utf-8")).hexdigest()


def seal(fact: Fact, *, run_id: RunId, seq: int, prev_hash: str, ts: str) -> Envelope:
    """The fact as the next line of the run's log; `payload` is what JSON gives back, so that hashes can be repeated."""
    body: dict[str, Any] = {
        "id": f"{run_id}.{seq}",
        "run_id": str(run_id),
        "seq": seq,
        "type": fact.type,
        "ts": ts,
        "task_id": fact.task_id,
        "trace_id": hashlib.sha256(run_id.encode()).hexdigest()[:32],
        "summary": json.loads(canonical(" ".join(fact.summary.split()))),
        "payload": json.loads(canonical(fact.payload())),
        "prev_hash": prev_hash,
    }
    return Envelope(**body, hash=digest(body))


def verify(envelopes: list[Envelope]) -> list[str]:
    """Everything that is wrong with a run's log, as sentences; an empty list is an intact log."""
    problems: list[str] = []
    previous = GENESIS
    for expected, item in enumerate(envelopes, 1):
        if item.seq != expected:
            problems.append(f"seq {item.seq} stands where {expected} should: a line is missing or doubled")
            break
        if item.prev_hash != previous:
            problems.append(f"seq {item.seq}: does not follow the line before it")
        if digest(item.as_dict()) != item.hash:
            problems.append(f"seq {item.seq}: the line was changed after it was written")
        previous = item.hash
    return problems
