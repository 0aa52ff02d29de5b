"""The smallest hierarchy: `domain` calls the subgraph `fashion` once, and the child's answer is the response."""

from __future__ import annotations

from typing import Any

from harness.supervisor import (
    GenericSupervisor,
    ModularNode,
    NodeContract,
    NodeInputs,
    NodeOutputs,
    NodeRegistry,
    SubgraphContract,
    SubgraphDefinition,
    TriggerCondition,
    build_graph_from_registry,
    run_registry,
)


class TrendNode(ModularNode):
    """Answers with a trend for whatever was asked."""

    CONTRACT = NodeContract(
        name="trend_node",
        description="Names the current trend",
        reads=["request"],
        writes=["response"],
        supervisor="fashion",
        is_terminal=True,
        trigger_conditions=[TriggerCondition(priority=1)],
    )

    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:  # noqa: ARG002 - the base's shape
        asked = inputs.get_slice("request").get("message", "anything")
        return NodeOutputs(
            response={"response_type": "fashion_trend", "response_message": f"Trend for '{asked}': clean lines."}
        )


def build_registry() -> NodeRegistry:
    registry = NodeRegistry()
    registry.register(TrendNode)
    registry.register_subgraph(
        SubgraphContract(
            subgraph_id="fashion",
            description="Fashion trends",
            reads=["request"],
            writes=["response"],
            entrypoint="fashion",
        ),
        SubgraphDefinition(subgraph_id="fashion", supervisors=["fashion"], nodes=["trend_node"]),
    )
    return registry


registry = build_registry()


def route_domain(state: dict[str, Any]) -> str:
    """Call the child for its action, until it has answered."""
    answered = state["response"].get("response_type")
    return "call_subgraph::fashion" if state["request"].get("action") == "fashion" and not answered else "done"


def supervisor_factory(name: str, llm: Any) -> GenericSupervisor:
    handler = route_domain if name == "domain" else None
    return GenericSupervisor(name, llm=llm, registry=registry, explicit_routing_handler=handler)


def build_graph() -> Any:
    graph = build_graph_from_registry(
        registry=registry,
        supervisors=["domain"],
        supervisor_factory=supervisor_factory,
        enable_subgraphs=True,
    )
    graph.set_entry_point("domain_supervisor")
    return graph.compile()


async def main() -> None:
    state = {"request": {"action": "fashion", "message": "Fall collection"}, "response": {}, "_internal": {}}
    result = await build_graph().ainvoke(state)
    print(result["response"]["response_message"])
    for item in result["_internal"]["decision_trace"]:
        print(f"{item['step']:3} {'  ' * item['depth']}{item['supervisor']}: {item['decision_kind']} {item['target']}")

    native = await run_registry(
        registry,
        state,
        entrypoint="domain",
        supervisors=["domain"],
        supervisor_factory=supervisor_factory,
        enable_subgraphs=True,
    )
    print("the native loop agrees:", native == result)
