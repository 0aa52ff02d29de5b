"""The boundary of a subgraph and of a node: declared slices pass, nothing else; schemas refuse; failures are routed on."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import BaseModel

from harness.supervisor import ModularNode, NodeContract, NodeRegistry, run_registry
from tests.supervisor.kit import answer, both, fresh, handlers, kinds, node, once, stop_reason, subgraph, trace


def child_registry(body, *, node_options=None, **boundary):
    registry = NodeRegistry()
    options = {"reads": ["request", "secret", "work"], "writes": ["response", "work"], "is_terminal": True}
    registry.register(node("inner", "child", body, **{**options, **(node_options or {})}))
    subgraph(registry, "child", supervisors=["child"], **boundary)
    return registry


def call_once(registry, state, **options):
    def main(state):
        return "done" if state["_internal"]["visited_subgraphs"] else "call_subgraph::child"

    return both(registry, state, supervisor_factory=handlers(registry, {"main": main}), **options)


def test_a_child_sees_only_what_its_contract_reads():
    """A slice that the subgraph does not read is empty inside, even for a node that reads it."""
    seen = []
    registry = child_registry(lambda inputs: seen.append(inputs.get_slice("secret")) or answer("ok"))
    final = call_once(registry, fresh(secret={"key": "k"}))
    assert seen == [{}, {}]
    assert final["secret"] == {"key": "k"}


def test_a_childs_undeclared_writes_stay_behind_and_are_traced():
    """Only declared slices come back; the rest is dropped with an entry that names it."""
    registry = child_registry({**answer("ok"), "work": {"n": 1}})
    final = call_once(registry, fresh())
    assert "work" not in final
    assert kinds(final) == [("SUBGRAPH", "child"), ("NODE", "inner"), ("FALLBACK", "child"), ("STOP_GLOBAL", "done")]
    assert trace(final)[2]["reason"] == "subgraph 'child' wrote ['work'], which its contract does not declare; dropped"


def test_a_declared_slice_that_a_child_left_alone_is_untouched():
    """A write that did not happen changes nothing, whatever the slice held."""
    registry = child_registry(answer("ok"), writes=["response", "work"])
    final = call_once(registry, fresh(work=["a", "list"]))
    assert final["work"] == ["a", "list"]


def test_a_childs_slices_are_merged_into_the_parents():
    """A child that writes one field keeps the parent's other fields."""
    registry = child_registry({"response": {"extra": 1}})
    final = call_once(registry, fresh(response={"kept": True}))
    assert final["response"] == {"kept": True, "extra": 1}


class BySlice(BaseModel):
    request: dict[str, int]


class ByField(BaseModel):
    amount: int


@pytest.mark.parametrize("schema", [BySlice, ByField])
def test_an_input_schema_refuses_before_the_child_runs(schema):
    """A schema names slices or their fields; what it refuses is a failure that the parent can route on."""
    registry = child_registry(answer("ok"), input_schema=schema)
    assert call_once(registry, fresh(request={"amount": 3}))["response"]["response_message"] == "ok"
    final = call_once(registry, fresh(request={"amount": "three"}))
    assert final["response"] == {}
    assert kinds(final) == [("SUBGRAPH", "child"), ("FALLBACK", "child"), ("STOP_GLOBAL", "done")]
    failure = final["_internal"]["child_failure"]
    assert (failure["subgraph_id"], failure["error"]) == ("child", "input_schema")
    assert "amount" in failure["message"]
    assert final["_internal"]["visited_subgraphs"] == {"child": 1}


class Answered(BaseModel):
    response_message: str


def test_an_output_schema_refuses_what_the_child_promised_otherwise():
    """A child whose output does not fit gives nothing and is a failure."""
    registry = child_registry({"response": {"response_message": 7}}, output_schema=Answered)
    final = call_once(registry, fresh())
    assert final["response"] == {}
    assert final["_internal"]["child_failure"]["error"] == "output_schema"
    registry = child_registry(answer("fits"), output_schema=Answered)
    assert call_once(registry, fresh())["response"]["response_message"] == "fits"


def boom(inputs):
    raise ValueError("no such dress")


def test_a_childs_exception_is_traced_and_the_parent_routes_on_it():
    """An exception below the top ends that level; the parent sees the failure, recovers, and the failure is then gone."""
    registry = child_registry(boom)
    registry.register(
        node(
            "recover", "main", answer("sorry"), when={"_internal.child_failure.error": "ValueError"}, is_terminal=False
        )
    )

    def main(state):
        return None if state["_internal"]["visited_subgraphs"] else "call_subgraph::child"

    final = both(registry, fresh(), supervisor_factory=handlers(registry, {"main": main}))
    assert kinds(final) == [
        ("SUBGRAPH", "child"),
        ("NODE", "inner"),
        ("FALLBACK", "inner"),
        ("NODE", "recover"),
        ("STOP_GLOBAL", "done"),
    ]
    assert trace(final)[2]["reason"] == "'inner' raised ValueError: no such dress"
    assert trace(final)[2]["depth"] == 1
    assert final["response"]["response_message"] == "sorry"
    assert "child_failure" not in final["_internal"]


def test_what_a_child_wrote_before_it_failed_is_kept():
    """The first node's answer survives the second node's exception."""
    registry = NodeRegistry()
    registry.register(node("good", "child", answer("half"), when={"response.response_type": None}))
    registry.register(node("bad", "child", boom, when={"response.response_type": "answer"}))
    subgraph(registry, "child", supervisors=["child"])
    final = call_once(registry, fresh())
    assert final["response"]["response_message"] == "half"
    assert final["_internal"]["child_failure"]["node"] == "bad"


def test_a_failure_two_levels_down_travels_up_until_somebody_handles_it():
    """A child that ends without handling its own child's failure hands it on to the parent."""
    registry = NodeRegistry()
    registry.register(node("bad", "inner", boom))
    subgraph(registry, "inner", supervisors=["inner"])
    subgraph(registry, "child", supervisors=["child"], nodes=[])

    def child(state):
        return "done" if "child_failure" in state["_internal"] else "call_subgraph::inner"

    table = {
        "main": lambda s: "done" if s["_internal"]["visited_subgraphs"] else "call_subgraph::child",
        "child": child,
    }
    final = both(registry, fresh(), supervisor_factory=handlers(registry, table))
    assert final["_internal"]["child_failure"]["subgraph_id"] == "inner"
    assert [item["depth"] for item in trace(final)] == [0, 1, 2, 2, 1, 0]


def test_a_child_that_always_fails_ends_in_a_safe_stop():
    """A stubborn parent runs into the reentry budget, not into an exception."""
    registry = child_registry(boom)
    final = both(registry, fresh(), supervisor_factory=handlers(registry, {"main": "call_subgraph::child"}))
    assert stop_reason(final) == "cycle_detected"


def test_a_handler_that_raises_inside_a_child_is_a_child_failure():
    """Supervisors of a child are held to the same rule as its nodes."""
    registry = child_registry(answer("unused"))

    def child(state):
        raise KeyError("oops")

    table = {
        "main": lambda s: "done" if s["_internal"]["visited_subgraphs"] else "call_subgraph::child",
        "child": child,
    }
    final = both(registry, fresh(), supervisor_factory=handlers(registry, table))
    assert final["_internal"]["child_failure"]["error"] == "KeyError"


def test_at_the_top_an_exception_is_the_callers():
    """There is no parent to route on a failure of the top level, so it is raised."""
    registry = NodeRegistry()
    registry.register(node("bad", "main", boom))
    with pytest.raises(ValueError, match="no such dress"):
        both(registry, fresh())


def test_a_node_cannot_change_its_inputs_for_others():
    """A node gets copies: what it does to them stays with it."""

    def vandal(inputs):
        inputs.get_slice("request")["items"].append("stolen")
        inputs.request["action"] = "hacked"
        return answer("done")

    registry = NodeRegistry()
    registry.register(node("vandal", "main", vandal, is_terminal=True))
    state = fresh(request={"items": ["a"]})
    assert both(registry, state)["request"] == {"items": ["a"]}
    assert state["request"] == {"items": ["a"]}


def test_a_nodes_undeclared_slices_are_dropped_and_undeclared_reads_are_empty(caplog):
    """The contract decides on both sides; the log names the offence."""
    registry = NodeRegistry()

    def greedy(inputs):
        assert inputs.get_slice("vault") == {}
        return {**answer("ok"), "vault": {"empty": True}}

    registry.register(node("greedy", "main", greedy, is_terminal=True))
    final = both(registry, fresh(vault={"gold": 1}))
    assert final["vault"] == {"gold": 1}
    assert "'vault'" in caplog.text
    assert "dropped" in caplog.text


def test_services_and_models_reach_a_node():
    """Services named in the contract are attributes; a dependency provider adds to the graph's services."""

    class Wired(ModularNode):
        CONTRACT = NodeContract(
            name="wired",
            description="d",
            reads=[],
            writes=["response"],
            supervisor="main",
            services=["db", "clock"],
            requires_llm=True,
            is_terminal=True,
            trigger_conditions=[{"priority": 1}],
        )

        def execute(self, inputs, config=None):
            return {"response": {"got": [self.db, self.clock, self.llm], "none": None}}

    registry = NodeRegistry()
    registry.register(Wired)
    final = both(
        registry,
        fresh(),
        llm_provider=None,
        llm=None,
        dependency_provider=lambda contract: {"clock": f"clock for {contract.name}"},
        db="the db",
    )
    assert final["response"]["got"] == ["the db", "clock for wired", None]


def test_a_node_that_returns_rubbish_is_told_so():
    """execute must return NodeOutputs, a mapping, or nothing."""
    registry = NodeRegistry()
    made = node("odd", "main")
    made.execute = lambda self, inputs, config=None: 42
    registry.register(made)
    with pytest.raises(TypeError, match="return NodeOutputs"):
        asyncio.run(run_registry(registry, fresh(), entrypoint="main"))


def test_a_call_may_be_the_entry_point():
    """The native loop can start at a subgraph call; nobody made it, so its end is the end."""
    registry = child_registry(answer("direct"))
    options = {"supervisors": [], "enable_subgraphs": True}
    final = asyncio.run(run_registry(registry, fresh(), entrypoint="call_subgraph::child", **options))
    assert final["response"]["response_message"] == "direct"
    assert final["_internal"]["phase"] == "ended"
    assert once("a")({"response": {}}) == "a"
