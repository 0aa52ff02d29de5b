"""Contracts, triggers and the registry: frozen values, refusals, look-ups."""

from __future__ import annotations

import dataclasses

import pytest
from pydantic import ValidationError

from harness.errors import UsageError
from harness.supervisor import (
    CallStackFrame,
    DecisionTraceItem,
    HierarchicalDecision,
    NodeContract,
    NodeInputs,
    NodeOutputs,
    NodeRegistry,
    RegistryInvalid,
    RoutingDecision,
    RoutingReason,
    SubgraphContract,
    SubgraphDefinition,
    TriggerCondition,
    triggers,
)
from tests.supervisor.kit import both, fashion, fresh, handlers, node, subgraph


def test_contracts_are_frozen():
    """A contract cannot be changed after it was written."""
    contract = node("a").CONTRACT
    with pytest.raises(ValidationError):
        contract.name = "b"
    with pytest.raises(ValidationError):
        TriggerCondition(priority=1).priority = 2
    with pytest.raises(ValidationError):
        SubgraphDefinition(subgraph_id="x").nodes = []


def test_a_contract_tells_its_best_condition_and_hints():
    """Helpers of the seed's library are kept."""
    conditions = [
        TriggerCondition(priority=1, llm_hint="one"),
        TriggerCondition(priority=5),
        TriggerCondition(priority=2, llm_hint="two"),
    ]
    contract = node("a", triggers=conditions).CONTRACT
    assert contract.get_highest_priority_condition().priority == 5
    assert contract.get_llm_hints() == ["one", "two"]
    assert node("b", triggers=[]).CONTRACT.get_highest_priority_condition() is None


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({}, True),
        ({"when": {}}, True),
        ({"when": {"request.action": "go"}}, True),
        ({"when": {"request.action": "stop"}}, False),
        ({"when": {"request.action": True}}, True),
        ({"when": {"request.missing": False}}, True),
        ({"when": {"request.zero": 0, "request.action": "go"}}, True),
        ({"when": {"request.deep.er": 7}}, True),
        ({"when": {"request.action.er": None}}, True),
        ({"when": {"action": "go"}}, True),
        ({"when": {"colour": "red"}}, True),
        ({"when": {"nowhere": None}}, True),
        ({"when_not": {"request.action": "go"}}, False),
        ({"when_not": {"request.action": "stop"}}, True),
        ({"when": {"request.action": "go"}, "when_not": {"request.deep.er": 7}}, False),
    ],
)
def test_conditions(condition, holds):
    """Paths, truth, equality, bare fields and negation, each as the contract documents it."""
    state = {"request": {"action": "go", "zero": 0, "deep": {"er": 7}}, "other": {"colour": "red"}, "response": None}
    assert triggers.holds(TriggerCondition(**condition), state) is holds


def test_matches_come_by_priority_then_by_registration():
    """Each node counts once, by its best matching condition."""
    registry = NodeRegistry()
    two = [TriggerCondition(priority=3), TriggerCondition(priority=8, when={"request.x": 1})]
    registry.register(node("a", triggers=[TriggerCondition(priority=3)]))
    registry.register(node("b", triggers=two))
    registry.register(node("c", triggers=[TriggerCondition(priority=5)]))
    found = registry.evaluate_triggers("main", fresh())
    assert [(match.node_name, match.priority, match.condition_index) for match in found] == [
        ("c", 5, 0),
        ("a", 3, 0),
        ("b", 3, 0),
    ]
    assert registry.evaluate_triggers("main", fresh(request={"x": 1}))[0].condition_index == 1
    assert registry.evaluate_triggers("nobody", fresh()) == []


@pytest.mark.parametrize("name", ["call_subgraph::x", "done"])
def test_reserved_names_are_refused(name):
    """A name that means something else to the router cannot be a node or a subgraph."""
    with pytest.raises(RegistryInvalid, match="reserved"):
        NodeRegistry().register(node(name))
    with pytest.raises(RegistryInvalid, match="reserved"):
        subgraph(NodeRegistry(), name)


def test_duplicates_and_collisions_are_refused():
    """One name is one thing; the error is a usage error and, as in the seed's library, a ValueError."""
    registry = fashion()
    with pytest.raises(ValueError, match="'trend_node' is already registered") as caught:
        registry.register(node("trend_node"))
    assert isinstance(caught.value, UsageError)
    assert caught.value.as_dict()["code"] == "registry_invalid"
    with pytest.raises(RegistryInvalid, match="conflicts with registered subgraph"):
        registry.register(node("fashion"))
    with pytest.raises(RegistryInvalid, match="already registered"):
        subgraph(registry, "fashion")
    with pytest.raises(RegistryInvalid, match="conflicts with registered node"):
        subgraph(registry, "trend_node")
    with pytest.raises(RegistryInvalid, match="mismatch"):
        registry.register_subgraph(
            SubgraphContract(subgraph_id="a", description="", reads=[], writes=[], entrypoint="a"),
            SubgraphDefinition(subgraph_id="b"),
        )
    with pytest.raises(RegistryInvalid, match="must have CONTRACT"):
        registry.register(int)


def test_lookups_and_exports():
    """Everything that was registered can be found again."""
    registry = fashion()
    registry.add_valid_slice("work")
    assert registry.get_all_nodes() == ["trend_node"]
    assert registry.get_supervisor_nodes("fashion") == ["trend_node"]
    assert registry.list_supervisors() == ["fashion"]
    assert registry.get_contract("nope") is registry.get_node_class("nope") is registry.get_subgraph("nope") is None
    assert isinstance(registry.get_contract("trend_node"), NodeContract)
    assert registry.list_subgraphs() == ["fashion"]
    assert registry.export_contracts()["trend_node"]["supervisor"] == "fashion"
    assert registry.export_subgraphs()["fashion"]["definition"]["nodes"] == ["trend_node"]


def test_inputs_and_outputs_hold_any_slice():
    """Slices are free names, `_internal` included; a slice of None says nothing."""
    inputs = NodeInputs(request={"a": 1}, _internal={"b": 2})
    assert inputs.get_slice("request") == inputs.request == {"a": 1}
    assert inputs.get_slice("_internal") == {"b": 2}
    assert inputs.get_slice("missing") == {}
    assert NodeOutputs(response={"x": 1}, _internal={"y": 2}, none=None).to_state_updates() == {
        "response": {"x": 1},
        "_internal": {"y": 2},
    }


def test_state_items_have_exactly_the_fields_of_their_types():
    """The dicts in the state and the public dataclasses cannot drift apart; all of it is plain data."""
    registry = fashion()
    frames = []

    def spy(state):
        frames.extend(state["_internal"]["call_stack"])

    table = {"main": "call_subgraph::fashion", "fashion": spy}
    final = both(registry, fresh(), supervisor_factory=handlers(registry, table))
    for item in final["_internal"]["decision_trace"]:
        assert DecisionTraceItem(**item).as_dict() == item
        assert item["reason"]
    assert frames[0] == {"subgraph_id": "fashion", "depth": 1, "entry_step": 2, "locals": {"parent_supervisor": "main"}}
    assert CallStackFrame(**frames[0]).as_dict() == frames[0]
    assert {field.name for field in dataclasses.fields(DecisionTraceItem)} == set(
        final["_internal"]["decision_trace"][0]
    )


def test_a_hierarchical_decision_is_a_route_with_a_kind():
    """The new type maps to the legacy string; RoutingDecision keeps its own shape."""
    assert HierarchicalDecision(decision_kind="SUBGRAPH", target="a").route == "call_subgraph::a"
    assert HierarchicalDecision(decision_kind="NODE", target="a").route == "a"
    assert HierarchicalDecision(decision_kind="STOP_LOCAL").route == "done"
    old = RoutingDecision(selected_node="a", reason=RoutingReason(decision_type="fallback"))
    assert old.to_supervisor_decision().next_node == "a"
    assert old.to_supervisor_decision().reasoning == "fallback"
