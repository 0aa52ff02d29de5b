"""What a supervisor may answer: a route (a plain string) or a decision value that carries its reason."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from harness.model.supervision import DecisionKind

DONE: Final = "done"
CALL_PREFIX: Final = "call_subgraph::"


def call_route(subgraph_id: str) -> str:
    """The route string that calls a subgraph."""
    return CALL_PREFIX + subgraph_id


class HierarchicalDecision(BaseModel):
    """A decision that says its kind; a handler or a custom supervisor may return one in place of a route string."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    decision_kind: DecisionKind
    target: str | None = None
    reason: str = ""

    @property
    def route(self) -> str:
        """The legacy route string, as it is written to `_internal.decision`."""
        if self.decision_kind == "SUBGRAPH" and self.target is not None:
            return call_route(self.target.removeprefix(CALL_PREFIX))
        if self.decision_kind == "NODE" and self.target is not None:
            return self.target
        return DONE


class SupervisorDecision(BaseModel):
    """The short answer; also the schema that a model's structured output is asked to fill."""

    model_config = ConfigDict(defer_build=True)

    next_node: str = Field(description="The name of the next action exactly as listed, or 'done'.")
    reasoning: str = Field(default="", description="Why, in one sentence.")

    # private, so that the model is never asked for it
    _kind: DecisionKind | None = PrivateAttr(default=None)


class MatchedRule(BaseModel):
    """One trigger condition that matched."""

    model_config = ConfigDict(defer_build=True)

    node: str
    condition: str
    priority: int


class RoutingReason(BaseModel):
    """Why a route was taken: terminal_state, explicit_routing, rule_match, llm_decision or fallback."""

    model_config = ConfigDict(defer_build=True)

    decision_type: str
    matched_rules: list[MatchedRule] = []
    llm_used: bool = False
    llm_reasoning: str | None = None
    detail: str = ""

    def describe(self) -> str:
        """One line, never empty."""
        text = self.detail or self.llm_reasoning or ""
        if self.matched_rules and not text:
            best = self.matched_rules[0]
            text = f"{best.node} matched ({best.condition}, priority {best.priority})"
        return f"{self.decision_type}: {text}" if text else self.decision_type


class RoutingDecision(BaseModel):
    """The traceable form of a supervisor's choice among the targets of its own level."""

    model_config = ConfigDict(defer_build=True)

    selected_node: str
    reason: RoutingReason

    _kind: DecisionKind | None = PrivateAttr(default=None)

    def to_supervisor_decision(self) -> SupervisorDecision:
        short = SupervisorDecision(next_node=self.selected_node, reasoning=self.reason.describe())
        short._kind = self._kind  # noqa: SLF001 - the two values are one decision in two lengths
        return short
