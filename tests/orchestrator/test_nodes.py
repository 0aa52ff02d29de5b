"""The nodes are contract nodes: one registry, checked as any, built as a LangGraph graph and run by the native driver."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import ClassVar

from harness.orchestrator import nodes
from harness.orchestrator.decision import Decision
from harness.orchestrator.supervisor import NAME, RoutingSupervisor
from harness.supervisor import (
    ModularNode,
    NodeContract,
    NodeInputs,
    NodeOutputs,
    NodeRegistry,
    build_graph_from_registry,
    run_registry,
)

CATALOGUE = {
    "initial_planner",
    "classifier",
    "complexity_analyzer",
    "task_executor",
    "spawn_subAgent",
    "subAgent_executor",
    "subAGENT_finalizer",
    "task_updater",
    "task_planner",
    "error_fallback",
    "finalizer",
}


class Noting(ModularNode):
    """Stands in for a node: notes the decision that it was given."""

    CONTRACT: ClassVar[NodeContract]
    seen: list[dict]

    async def execute(self, inputs: NodeInputs, config=None) -> NodeOutputs:
        self.seen.append(inputs.get_slice("routing"))
        return NodeOutputs()


def noting_registry() -> NodeRegistry:
    """The registry's contracts over nodes without effects."""
    real, made = nodes.registry(), NodeRegistry()
    for name in real.get_all_nodes():
        contract = real.get_contract(name).model_copy(update={"services": ["seen"]})
        made.register(type(name, (Noting,), {"CONTRACT": contract}))
    return made


def decisions() -> deque[Decision]:
    return deque([Decision("task_executor", "why", "0", "P"), Decision("task_updater", "why", "0", "P")])


def test_every_node_of_the_catalogue_is_registered_under_its_name():
    """One file each, one class each, all under the router."""
    registry = nodes.registry()
    assert set(registry.get_all_nodes()) == CATALOGUE
    assert registry.list_supervisors() == [NAME]


def told(*, native: bool) -> list[dict]:
    """What the nodes were given, under either driver."""
    seen: list[dict] = []
    supervisor = RoutingSupervisor(decisions())
    parts = {"supervisor_factory": lambda *_: supervisor, "seen": seen}
    if native:
        asyncio.run(run_registry(noting_registry(), {}, entrypoint=NAME, **parts))
    else:
        graph = build_graph_from_registry(noting_registry(), entrypoint=f"{NAME}_supervisor", **parts)
        asyncio.run(graph.compile().ainvoke({}))
    return seen


def test_both_drivers_hand_the_decisions_to_the_same_nodes():
    """The native loop and a LangGraph graph of the same registry."""
    assert [item["chosen_node"] for item in told(native=True)] == ["task_executor", "task_updater"]
    assert told(native=True) == told(native=False)
