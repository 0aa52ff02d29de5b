"""Facts about a run as a whole."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from harness.model.events.fact import Fact, line


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
    parent_run: str | None = None
    parent_task: str | None = None
    target_at: str | None = None  # where the branch to land on was; None when it did not exist
    within: dict[str, Any] | None = None  # of a nested run: the contract that its contracts are never wider than

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
    """The coordinator stopped on request and the children stay open; with `end`, all of them are to be closed for `reason`."""

    type = "run.cancelled"
    cause: str
    end: bool = False
    reason: str = "cancelled"

    @property
    def summary(self) -> str:
        return f"{'to end' if self.end else 'stopped'}: {self.cause}"


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


class LandingStarted(Fact):
    """Announced before a branch of the user's moves; `old` None when the branch does not exist yet."""

    type = "run.landing_started"
    target: str
    old: str | None
    new: str

    @property
    def summary(self) -> str:
        return f"landing on {self.target}: {(self.old or 'nothing')[:12]} to {self.new[:12]}"


class UndoStarted(Fact):
    """Announced before a landing is taken back; `new` None when the landing had made the branch."""

    type = "run.undo_started"
    target: str
    old: str
    new: str | None

    @property
    def summary(self) -> str:
        return f"taking {self.target} back to {(self.new or 'nothing')[:12]}"


class LandingUndone(Fact):
    type = "run.landing_undone"
    target: str
    old: str
    new: str | None

    @property
    def summary(self) -> str:
        return f"{self.target} is back at {(self.new or 'nothing')[:12]}"


class LandingStopped(Fact):
    """What was announced last, a landing or its undoing, did not happen; the branch is where it was."""

    type = "run.landing_stopped"
    target: str
    reason: str

    @property
    def summary(self) -> str:
        return line(f"{self.target} was not moved: {self.reason}")


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
