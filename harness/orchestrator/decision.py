"""One routing decision: which node is next, for which task, in which role, and why."""

from __future__ import annotations

from typing import NamedTuple

from harness.model import events as ev


class Decision(NamedTuple):
    """What the router chose; `replayed` when an earlier coordinator logged it and did not carry it out."""

    chosen_node: str
    reason: str
    task_id: str | None
    persona: str
    replayed: bool = False

    def fact(self) -> ev.RoutingDecision:
        return ev.RoutingDecision(
            task=self.task_id, chosen_node=self.chosen_node, reason=self.reason, persona=self.persona
        )
