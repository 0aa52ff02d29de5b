"""A supervisor's choice while it is being made: light values, because one is made for every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.model.supervision import DecisionKind
from harness.supervisor.contracts import NodeContract
from harness.supervisor.triggers import TriggerMatch


class Rule(NamedTuple):
    """A node with the match that speaks for it."""

    contract: NodeContract
    match: TriggerMatch

    @property
    def node(self) -> str:
        return self.contract.name

    @property
    def priority(self) -> int:
        return self.match.priority

    @property
    def condition(self) -> str:
        conditions, index = self.contract.trigger_conditions, self.match.condition_index
        known = 0 <= index < len(conditions)  # an overridden `evaluate_triggers` may match without a condition
        return conditions[index].describe() if known else "evaluate_triggers"


class Choice(NamedTuple):
    """A route and why: `type` is the reason's category, `said` the model's own words."""

    route: str
    type: str
    detail: str
    rules: Sequence[Rule] = ()
    kind: DecisionKind | None = None
    said: str | None = None

    def describe(self) -> str:
        return f"{self.type}: {self.detail}"
