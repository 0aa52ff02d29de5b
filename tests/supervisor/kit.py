"""Shared by the tests: small registries, scripted supervisors, and a run through both drivers at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from harness.supervisor import (
    GenericSupervisor,
    ModularNode,
    NodeContract,
    NodeOutputs,
    NodeRegistry,
    SubgraphContract,
    SubgraphDefinition,
    TriggerCondition,
    build_graph_from_registry,
    run_registry,
)

ALWAYS = (TriggerCondition(priority=1),)


def node(
    name: str,
    supervisor: str = "main",
    body: Any = None,
    *,
    when: dict[str, Any] | None = None,
    triggers: Iterable[TriggerCondition] | None = None,
    **contract: Any,
) -> type[ModularNode]:
    """A node class; `body` is its outputs, or a function of its inputs."""
    conditions = [TriggerCondition(priority=1, when=when)] if triggers is None else list(triggers)
    fields = {"description": name, "reads": ["request"], "writes": ["response"], **contract}

    class Made(ModularNode):
        CONTRACT = NodeContract(name=name, supervisor=supervisor, trigger_conditions=conditions, **fields)

        async def execute(self, inputs, config=None):
            made = body(inputs) if callable(body) else body
            return made if isinstance(made, NodeOutputs) else NodeOutputs(**(made or {}))

    return Made


def subgraph(registry: NodeRegistry, name: str, *, supervisors=None, nodes=None, **contract: Any) -> None:
    fields = {"description": name, "reads": ["request"], "writes": ["response"], "entrypoint": name, **contract}
    registry.register_subgraph(
        SubgraphContract(subgraph_id=name, **fields),
        SubgraphDefinition(subgraph_id=name, supervisors=supervisors, nodes=nodes),
    )


def answer(text: str, kind: str = "answer") -> dict[str, Any]:
    return {"response": {"response_type": kind, "response_message": text}}


def fashion(**subgraph_options: Any) -> NodeRegistry:
    """The registry of the seed's guide."""
    registry = NodeRegistry()
    registry.register(node("trend_node", "fashion", answer("clean lines", "fashion_trend"), is_terminal=True))
    subgraph(registry, "fashion", supervisors=["fashion"], nodes=["trend_node"], **subgraph_options)
    return registry


def handlers(registry: NodeRegistry, table: dict[str, Any], **options: Any) -> Callable[[str, Any], GenericSupervisor]:
    """A supervisor factory: a handler for each name in the table (a plain string answers always)."""

    def factory(name: str, llm: Any) -> GenericSupervisor:
        entry = table.get(name)
        handler = (lambda _state: entry) if isinstance(entry, str) else entry
        return GenericSupervisor(name, llm=llm, registry=registry, explicit_routing_handler=handler, **options)

    return factory


def once(route: str, then: str = "done") -> Callable[[dict[str, Any]], str]:
    """A handler that takes a route while the level has not been answered, then another."""
    return lambda state: then if state.get("response", {}).get("response_type") else route


def fresh(**slices: Any) -> dict[str, Any]:
    return {"request": {}, "response": {}, "_internal": {}, **slices}


def compiled(registry: NodeRegistry, entry: str = "main_supervisor", *, checkpointer=None, **options: Any) -> Any:
    graph = build_graph_from_registry(registry, **options)
    graph.set_entry_point(entry)
    return graph.compile(checkpointer=checkpointer)


def both(registry: NodeRegistry, state: dict[str, Any], entry: str = "main", **options: Any) -> dict[str, Any]:
    """Run the native loop and LangGraph, claim that they agree, and return the final state."""
    options = {"supervisors": [entry.removesuffix("_supervisor")], "enable_subgraphs": True, **options}

    async def run() -> tuple[dict[str, Any], dict[str, Any]]:
        native = await run_registry(registry, state, entrypoint=entry, **options)
        graph = compiled(registry, f"{entry.removesuffix('_supervisor')}_supervisor", **options)
        return native, await graph.ainvoke(state)

    native, langgraph = asyncio.run(run())
    assert native == langgraph
    return native


def trace(state: dict[str, Any]) -> list[dict[str, Any]]:
    return state["_internal"]["decision_trace"]


def kinds(state: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(item["decision_kind"], item["target"]) for item in trace(state)]


def stop_reason(state: dict[str, Any]) -> str | None:
    return trace(state)[-1]["termination_reason"]
