"""The builder of the seeds: the same graph as from a registry, and its parts for graphs drawn by hand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.graph import END, StateGraph

from harness.supervisor import GraphBuilder, NodeRegistry, RegistryInvalid, TriggerMatch, build_graph_from_registry
from tests.supervisor.kit import answer, both, fashion, fresh, handlers, node, once, stop_reason, subgraph, trace


def by_hand(builder: GraphBuilder) -> Any:
    """A graph whose edges a person drew from the builder's parts, with fixed edges after nodes."""
    graph = StateGraph(dict)
    supervisors = [f"{name}_supervisor" for name in builder.supervisor_names]
    for name in builder.supervisor_names:
        graph.add_node(f"{name}_supervisor", builder.create_supervisor_wrapper(name))
        graph.add_conditional_edges(
            f"{name}_supervisor", builder.create_routing_function(name), builder.build_routing_map(name)
        )
        for inner in builder.registry.get_supervisor_nodes(name):
            graph.add_node(inner, builder.create_node_wrapper(inner))
            contract = builder.registry.get_contract(inner)
            assert contract is not None
            graph.add_edge(inner, END if contract.is_terminal else f"{name}_supervisor")
    for called in builder.registry.list_subgraphs():
        graph.add_node(f"call_subgraph__{called}", builder.create_call_subgraph_wrapper(called))
        back = {**{name: name for name in supervisors}, END: END}
        graph.add_conditional_edges(f"call_subgraph__{called}", builder.create_call_subgraph_return_router(), back)
    graph.set_entry_point(supervisors[0])
    return graph.compile()


def test_a_graph_drawn_by_hand_from_the_parts_ends_as_the_built_one():
    """Wrappers, routing functions and maps of the builder give the state and trace that `build` gives."""
    registry = fashion()
    options: dict[str, Any] = {
        "supervisor_factory": handlers(registry, {"domain": once("call_subgraph::fashion")}),
        "enable_subgraphs": True,
    }
    builder = GraphBuilder(registry, **options).add_supervisor("domain")
    expected = both(registry, fresh(), "domain", **options)
    built = asyncio.run(builder.build("domain_supervisor").compile().ainvoke(fresh()))
    drawn = asyncio.run(by_hand(builder).ainvoke(fresh()))
    assert built == drawn == expected
    assert builder.build_routing_map("domain") == {
        "call_subgraph::fashion": "call_subgraph__fashion",
        "done": END,
    }


def test_fixed_edges_of_a_hand_drawn_graph_still_end_in_a_safe_stop():
    """A node that used up the steps hands back to its supervisor, which stops the graph: no endless loop."""
    registry = NodeRegistry()
    registry.register(node("again", "main", {"response": {"seen": 1}}))
    builder = GraphBuilder(registry, enable_subgraphs=True).add_supervisor("main")
    budget = {"budgets": {"max_depth": 2, "max_steps": 5, "max_reentry": 2}}
    ended = asyncio.run(by_hand(builder).ainvoke(fresh(_internal=budget)))
    assert stop_reason(ended) == "max_steps_exceeded"
    assert ended["response"]["response_type"] == "terminal"


def test_a_supervisor_brings_a_model_and_services_of_its_own():
    """`add_supervisor(name, llm, **services)` binds them to the nodes of that supervisor alone."""
    seen: dict[str, Any] = {}

    class Listening(node("one", "first", answer("one"), is_terminal=True)):  # type: ignore[misc]  # a class made by a function
        def __init__(self, llm=None, **services):
            super().__init__(llm=llm, **services)
            seen[self.CONTRACT.name] = (llm, services)

    class Other(Listening):
        CONTRACT = Listening.CONTRACT.model_copy(update={"name": "two", "supervisor": "second"})

    registry = NodeRegistry()
    registry.register(Listening)
    registry.register(Other)
    builder = GraphBuilder(registry, services={"shared": 1})
    builder.add_supervisor("first", tool=2).add_supervisor("second", llm=None)
    for entry in ("first", "second"):
        asyncio.run(builder.build(f"{entry}_supervisor").compile().ainvoke(fresh()))
    assert seen == {"one": (None, {"shared": 1, "tool": 2}), "two": (None, {"shared": 1})}


def test_parts_of_what_was_not_added_are_refused():
    """A name that is no part of the graph is named, not a KeyError."""
    builder = GraphBuilder(fashion(), enable_subgraphs=True).add_supervisor("domain")
    with pytest.raises(RegistryInvalid, match="fashion"):
        builder.create_supervisor_wrapper("fashion")
    with pytest.raises(RegistryInvalid, match="trend_node"):
        builder.create_node_wrapper("trend_node")
    with pytest.raises(RegistryInvalid, match="nowhere"):
        builder.create_call_subgraph_wrapper("nowhere")


class Reversing(NodeRegistry):
    """Matches what no condition matches, worst first, and a node of another level."""

    def evaluate_triggers(self, supervisor, state):
        if state["response"]:
            return []
        return [TriggerMatch(3, "elsewhere", 0), TriggerMatch(2, "silent", 7), TriggerMatch(1, "loud", 0)]


def test_an_overridden_evaluate_triggers_decides():
    """A registry that overrides it chooses the node, in both drivers; what is out of reach is passed over."""
    registry = Reversing()
    registry.register(node("loud", "main", answer("loud"), is_terminal=True))
    registry.register(node("silent", "main", answer("silent"), triggers=[], is_terminal=True))
    registry.register(node("elsewhere", "other", answer("elsewhere"), is_terminal=True))
    ended = both(registry, fresh())
    assert ended["response"]["response_message"] == "silent"
    assert trace(ended)[0]["reason"] == "rule_match: silent matched (evaluate_triggers, priority 2)"


def test_both_doors_build_the_same_graph():
    """`build_graph_from_registry` is the builder with every supervisor added."""
    registry = fashion()
    subgraph(registry, "more", supervisors=["fashion"], nodes=["trend_node"], entrypoint="fashion")
    builder = GraphBuilder(registry, enable_subgraphs=True).add_supervisor("fashion")
    short = build_graph_from_registry(registry, enable_subgraphs=True)
    assert sorted(builder.build().nodes) == sorted(short.nodes)
