"""Facts of a run that began with a goal: the plans that were made for it, and whether one more is needed."""

from __future__ import annotations

from typing import Any

from harness.model.events.fact import Fact


class PlanAdopted(Fact):
    """A plan for the goal, checked like any other; its sub-agents are created in the same transaction."""

    type = "plan.adopted"
    plan: dict[str, Any]
    partial: bool
    round: int

    @property
    def summary(self) -> str:
        return f"plan {self.round}: {len(self.plan['steps'])} steps"


class WorkClassified(Fact):
    """Whether the goal needs another plan after this round; `missing` is what that plan is for."""

    type = "work_classified"
    more_work: bool
    reasons: list[str]
    missing: str

    @property
    def summary(self) -> str:
        return f"{'more work' if self.more_work else 'no more work'}: {'; '.join(self.reasons)[:160]}"
