"""Facts about a race: several candidates for one attempt, judged alike, one of them chosen."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from harness.model.events.fact import StepFact, line


class CandidateStarted(StepFact):
    type = "candidate.started"
    attempt: int
    candidate: int
    agent: str
    workspace: str

    @property
    def summary(self) -> str:
        return f"step {self.task} candidate {self.candidate} starts: {self.agent}"


class CandidateJudged(StepFact):
    """The verdict on one candidate; `lines` is the size of its diff."""

    type = "candidate.judged"
    attempt: int
    candidate: int
    agent: str
    ok: bool
    reason: str | None
    message: str
    commit: str | None = None
    tree: str | None = None
    lines: int = 0
    failed_checks: int = 0
    usage: dict[str, Any] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        verdict = f"ready, {self.lines} lines" if self.ok else f"{self.reason}: {line(self.message)}"
        return f"step {self.task} candidate {self.candidate} ({self.agent}): {verdict}"


class CandidateChosen(StepFact):
    """The best of those that were judged; `not_started` were left out because the budget was spent."""

    type = "candidate.chosen"
    attempt: int
    candidate: int
    agent: str
    judged: int
    not_started: int = 0

    @property
    def summary(self) -> str:
        return f"step {self.task} takes candidate {self.candidate} ({self.agent}) of {self.judged}"
