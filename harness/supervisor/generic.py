"""The supervisor that needs no code of its own: terminal response, handler, rules, model, done; in this order."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Collection
from inspect import isawaitable
from typing import Any, Final

from harness.model.supervision import DecisionKind
from harness.supervisor import control_flow, prompt, scope
from harness.supervisor.choice import Choice, Rule
from harness.supervisor.decisions import (
    CALL_PREFIX,
    DONE,
    HierarchicalDecision,
    MatchedRule,
    RoutingDecision,
    RoutingReason,
    SupervisorDecision,
    call_route,
)
from harness.supervisor.kernel import NOTE, SUGGESTION
from harness.supervisor.registry import NodeRegistry
from harness.supervisor.scope import Reach, View
from harness.supervisor.slices import INTERNAL, State, internal_of, isolated, response_type_of

Answer = str | HierarchicalDecision | None
ExplicitRoutingHandler = Callable[[State], Answer | Awaitable[Answer]]
ContextBuilder = Callable[[State, list[str]], dict[str, Any]]

DEFAULT_MAX_ITERATIONS: Final = 10
DEFAULT_MAX_FIELD_LENGTH: Final = 10_000
DEFAULT_TERMINAL_RESPONSE_TYPES: Final = frozenset({"terminal"})

_FIELDS: Final = ("next_node", "reasoning")

_log = logging.getLogger("harness.supervisor")


class GenericSupervisor:
    """Routes among the nodes of one supervisor and the subgraphs of its level.

    `explicit_routing_handler` may be async and may return a `HierarchicalDecision`. A model is any object with
    `with_structured_output(schema)` whose result has `ainvoke(prompt, config=...)`. `max_iterations=0` decides nothing.
    """

    def __init__(  # noqa: PLR0917 - the seed's signature
        self,
        supervisor_name: str,
        llm: Any = None,
        registry: NodeRegistry | None = None,
        max_iterations: int | None = None,
        terminal_response_types: Collection[str] | None = None,
        context_builder: ContextBuilder | None = None,
        max_field_length: int | None = None,
        explicit_routing_handler: ExplicitRoutingHandler | None = None,
        allowlist: Collection[str] | None = None,
    ) -> None:
        self.name = supervisor_name
        self.llm = llm
        self.registry = registry if registry is not None else NodeRegistry()
        self.max_iterations = DEFAULT_MAX_ITERATIONS if max_iterations is None else max_iterations
        types = DEFAULT_TERMINAL_RESPONSE_TYPES if terminal_response_types is None else terminal_response_types
        self.terminal_response_types = frozenset(types)
        self.context_builder = context_builder
        self.max_field_length = max_field_length or DEFAULT_MAX_FIELD_LENGTH
        self.explicit_routing_handler = explicit_routing_handler
        self.allowlist = allowlist

    async def run(self, state: State, config: Any = None) -> dict[str, Any]:
        """Decide once and return the `_internal` updates: decision, iteration count, and a note for the trace."""
        key = f"{self.name}_iteration"
        count = internal_of(state).get(key, 0)
        if count >= self.max_iterations:
            note = {"kind": None, "reason": f"max_iterations {self.max_iterations} reached"}
            return {INTERNAL: {"decision": DONE, key: count, NOTE: note}}
        if self._decides_itself():
            choice = await self._choose(state, config)
            route, kind, reason = choice.route, choice.kind, choice.describe()
        else:
            decision = await self.decide(state, config)
            route, kind, reason = decision.next_node, decision._kind, decision.reasoning  # noqa: SLF001 - as below
        return {INTERNAL: {"decision": route, key: count + 1, NOTE: {"kind": kind, "reason": reason}}}

    async def __call__(self, state: State, config: Any = None) -> dict[str, Any]:
        return await self.run(state, config)

    async def decide(self, state: State, config: Any = None) -> SupervisorDecision:
        """The short form of `decide_with_trace`; a subclass may override either."""
        return (await self.decide_with_trace(state, config)).to_supervisor_decision()

    async def decide_with_trace(self, state: State, config: Any = None) -> RoutingDecision:
        """The next target and the whole reason."""
        choice = await self._choose(state, config)
        reason = RoutingReason(
            decision_type=choice.type,
            matched_rules=[
                MatchedRule(node=rule.node, condition=rule.condition, priority=rule.priority) for rule in choice.rules
            ],
            llm_used=choice.type == "llm_decision",
            llm_reasoning=choice.said,
            detail=choice.detail,
        )
        decision = RoutingDecision(selected_node=choice.route, reason=reason)
        decision._kind = choice.kind  # noqa: SLF001 - private, because its public fields are the seed's
        return decision

    def _decides_itself(self) -> bool:
        # four pydantic values a step, only to be read once, would cost more than everything else
        mine: tuple[Any, Any] = (self.decide, self.decide_with_trace)
        return (
            getattr(mine[0], "__func__", None) is GenericSupervisor.decide
            and getattr(mine[1], "__func__", None) is GenericSupervisor.decide_with_trace
        )

    async def _choose(self, state: State, config: Any) -> Choice:
        response_type = response_type_of(state)
        if response_type is not None and response_type in self.terminal_response_types:
            return Choice(DONE, "terminal_state", f"response_type {response_type!r} is terminal", kind="STOP_GLOBAL")
        reach = scope.view_for(self.name, self.registry)
        view = reach[0]
        explicit, remark = await self._ask_handler(state, view)
        if explicit is not None:
            return explicit
        rules = self._rules(state, view)
        if self.llm is not None and (view.nodes or view.subgraphs):
            chosen, trouble = await self._ask_model(state, reach, rules, config)
            if chosen is not None:
                return chosen
            remark += trouble
        if rules:
            best = rules[0]
            detail = f"{best.node} matched ({best.condition}, priority {best.priority}){remark}"
            return Choice(best.node, "rule_match", detail, rules)
        suggested = internal_of(state).get(SUGGESTION)
        if isinstance(suggested, str) and suggested in view.routes:
            return Choice(view.routes[suggested], "fallback", f"the last node suggested {suggested!r}{remark}")
        return Choice(DONE, "fallback", f"nothing matched{remark}")

    def _rules(self, state: State, view: View) -> list[Rule]:
        """What the registry says matches, a subclass's `evaluate_triggers` included; nodes of other levels are no targets."""
        found = self.registry.evaluate_triggers(self.name, state)
        return [Rule(view.contracts[match.node_name], match) for match in found if match.node_name in view.contracts]

    async def _ask_handler(self, state: State, view: View) -> tuple[Choice | None, str]:
        if self.explicit_routing_handler is None:
            return None, ""
        answer = self.explicit_routing_handler(isolated(state))
        if isawaitable(answer):
            answer = await answer
        if not answer:
            return None, ""
        kind: DecisionKind | None = None
        detail = f"the handler chose {answer!r}"
        if isinstance(answer, HierarchicalDecision):
            kind, detail = answer.decision_kind, answer.reason or f"the handler chose {answer.route!r}"
            answer = answer.route
        route = view.routes.get(answer) if isinstance(answer, str) else None
        if route is None:
            _log.warning("the handler of supervisor %r named %r, which is no target here", self.name, answer)
            return None, f"; the handler named {answer!r}, which is no target here"
        return Choice(route, "explicit_routing", detail, kind=kind), ""

    async def _ask_model(self, state: State, reach: Reach, rules: list[Rule], config: Any) -> tuple[Choice | None, str]:
        """The model's choice, or a remark on why it gave none that can be used."""
        try:
            structured = self.llm.with_structured_output(SupervisorDecision)
            answer = await structured.ainvoke(self._question(state, reach, rules), config=config)
        except Exception as error:
            if control_flow.is_signal(error):
                raise
            _log.warning("the model of supervisor %r failed: %s", self.name, error)
            return None, f"; the model failed with {type(error).__name__}: {error}"
        name, why = _read(answer)
        route = reach[0].routes.get(name) if name is not None else None
        if route is None:
            _log.warning("the model of supervisor %r chose %r, which is no target here", self.name, name)
            return None, f"; the model chose {name!r}, which is no target here"
        return Choice(route, "llm_decision", why or f"the model chose {name!r}", rules, said=why), ""

    def _question(self, state: State, reach: Reach, rules: list[Rule]) -> str:
        """The prompt; what the allowlist forbids is not offered, because choosing it would end the session."""
        view, allowed = reach[0], self.allowlist if self.allowlist is not None else reach[1]
        offered = [(contract.name, prompt.action_text(contract)) for contract in view.nodes]
        offered += [(call_route(name), _purpose(self.registry, name)) for name in view.subgraphs]
        if allowed is not None:
            offered = [item for item in offered if item[0] in allowed or item[0].removeprefix(CALL_PREFIX) in allowed]
            rules = [rule for rule in rules if rule.node in allowed]
        slices: list[str] = ["_internal", "request", "response"]
        extra = ""
        if self.context_builder is not None:
            built = self.context_builder(isolated(state), [rule.node for rule in rules])
            slices = sorted(built.get("slices", slices))
            summary = built.get("summary")
            if summary is not None:
                extra = "\n" + (summary if isinstance(summary, str) else json.dumps(summary, default=str))
        context = prompt.state_text(state, slices, self.max_field_length) + extra
        return prompt.routing_prompt(self.name, offered, rules, context)


def _read(answer: Any) -> tuple[str | None, str | None]:
    if isinstance(answer, str):
        return answer, None
    fields = answer if isinstance(answer, dict) else {key: getattr(answer, key, None) for key in _FIELDS}
    name, why = (fields.get(key) for key in _FIELDS)
    return (name if isinstance(name, str) else None), (why if isinstance(why, str) else None)


def _purpose(registry: NodeRegistry, subgraph_id: str) -> str:
    found = registry.get_subgraph(subgraph_id)
    return found[0].description if found is not None else ""
