"""Budgets: honoured at every step, at every depth, also when they are zero."""

from __future__ import annotations

import asyncio

import pytest

from harness.errors import UsageError
from harness.supervisor import Budgets, NodeRegistry, run_registry
from tests.supervisor.kit import answer, both, fashion, fresh, handlers, kinds, node, once, stop_reason, subgraph, trace


def limited(**budgets):
    return fresh(_internal={"budgets": budgets})


def calling(registry, target="call_subgraph::fashion"):
    return {"supervisor_factory": handlers(registry, {"main": target})}


@pytest.mark.parametrize(
    ("budgets", "reason", "step"),
    [
        ({"max_depth": 0}, "max_depth_exceeded", 2),
        ({"max_steps": 0}, "max_steps_exceeded", 1),
        ({"max_reentry": 0}, "cycle_detected", 2),
    ],
)
def test_a_budget_of_zero_allows_nothing(budgets, reason, step):
    """Zero is a limit: the child never runs, and the reason is the message because there is no other."""
    registry = fashion()
    final = both(registry, limited(**budgets), **calling(registry))
    assert final["response"] == {"response_type": "terminal", "response_message": reason}
    assert trace(final)[-1]["step"] == step
    assert stop_reason(final) == reason
    assert final["_internal"]["visited_subgraphs"] == {}


@pytest.mark.parametrize("limit", range(1, 11))
def test_max_steps_stops_at_every_kind_of_step(limit):
    """Whatever step is one too many (supervisor, call, node, at any depth), it is the stop and nothing runs after it."""
    registry = fashion()
    final = both(registry, limited(max_steps=limit, max_reentry=9), **calling(registry))
    assert final["_internal"]["step_count"] == limit + 1
    assert stop_reason(final) == "max_steps_exceeded"
    assert final["_internal"]["call_stack"] == []
    assert final["response"]["response_type"] == "terminal"
    expected = "clean lines" if limit >= 4 else "max_steps_exceeded"
    assert final["response"]["response_message"] == expected


def test_exactly_max_steps_is_allowed():
    """A turn of five steps fits into a budget of five."""
    registry = fashion()
    options = {"supervisor_factory": handlers(registry, {"main": once("call_subgraph::fashion")})}
    final = both(registry, limited(max_steps=5), **options)
    assert final["_internal"]["step_count"] == 5
    assert final["response"]["response_type"] == "fashion_trend"
    assert stop_reason(final) is None


def looping():
    registry = NodeRegistry()
    registry.register(node("again", "main", {"work": {"done": True}}, writes=["work"]))
    return registry


def test_a_flat_graph_with_budgets_is_limited_on_every_step():
    """Budgets in the state bind a graph without subgraphs too."""
    final = both(looping(), limited(max_steps=3), enable_subgraphs=False)
    assert stop_reason(final) == "max_steps_exceeded"
    assert kinds(final) == [("NODE", "again"), ("NODE", "again"), ("STOP_GLOBAL", "again")]
    assert final["work"] == {"done": True}


def test_a_flat_graph_without_budgets_is_not_limited_by_defaults():
    """Without budgets only max_iterations ends a loop, and nothing new is written to the state."""
    registry = looping()
    options = {"supervisor_factory": handlers(registry, {}, max_iterations=60)}
    final = both(registry, fresh(), enable_subgraphs=False, **options)
    assert final["_internal"] == {"decision": "done", "main_iteration": 60, "phase": "ended"}
    assert final["response"] == {}


def nested(levels):
    """main -> l1 -> l2 -> ...; the last one answers."""
    registry = NodeRegistry()
    registry.register(node("leaf_node", f"l{levels}", answer("deep"), is_terminal=True))
    for level in range(1, levels + 1):
        subgraph(registry, f"l{level}", supervisors=[f"l{level}"], nodes=["leaf_node"] if level == levels else [])
    table = {"main": once("call_subgraph::l1")}
    table |= {f"l{level}": once(f"call_subgraph::l{level + 1}") for level in range(1, levels)}
    return registry, {"supervisor_factory": handlers(registry, table)}


def test_two_levels_fit_into_the_default_depth():
    """A nested call returns level by level with its answer, and the stack is empty again."""
    registry, options = nested(2)
    final = both(registry, fresh(), **options)
    assert final["response"] == {"response_type": "answer", "response_message": "deep"}
    assert kinds(final) == [
        ("SUBGRAPH", "l1"),
        ("SUBGRAPH", "l2"),
        ("NODE", "leaf_node"),
        ("STOP_LOCAL", "done"),
        ("STOP_GLOBAL", "done"),
    ]
    assert [item["depth"] for item in trace(final)] == [0, 1, 2, 1, 0]
    assert final["_internal"]["call_stack"] == []
    assert final["_internal"]["visited_subgraphs"] == {"l1": 1, "l2": 1}


def test_a_third_level_is_too_deep_by_default_and_fits_when_allowed():
    """max_depth counts active calls: the third stops the whole turn from depth two, or runs when three are allowed."""
    registry, options = nested(3)
    final = both(registry, fresh(), **options)
    assert stop_reason(final) == "max_depth_exceeded"
    assert trace(final)[-1]["depth"] == 2
    assert final["_internal"]["call_stack"] == []
    assert final["response"] == {"response_type": "terminal", "response_message": "max_depth_exceeded"}
    assert both(registry, limited(max_depth=3), **options)["response"]["response_message"] == "deep"


def test_a_subgraph_that_calls_itself_is_stopped():
    """Recursion ends at the depth budget, or at the reentry budget when depth allows more."""
    registry = NodeRegistry()
    subgraph(registry, "self", supervisors=["self"], nodes=[])
    options = {"supervisor_factory": handlers(registry, {"main": "call_subgraph::self", "self": "call_subgraph::self"})}
    assert stop_reason(both(registry, fresh(), **options)) == "max_depth_exceeded"
    final = both(registry, limited(max_depth=9), **options)
    assert stop_reason(final) == "cycle_detected"
    assert trace(final)[-1]["depth"] == 2


def test_budgets_are_read_with_defaults_and_refused_when_they_are_no_numbers():
    """Missing budgets get their defaults; nonsense is a usage error that names the budget."""
    assert Budgets.of(None) == Budgets(2, 40, 2)
    assert Budgets.of({"max_steps": "7", "max_depth": None}) == Budgets(2, 7, 2)
    assert Budgets.of(Budgets(1, 1, 1)) == Budgets(1, 1, 1)
    for raw in ({"max_steps": "many"}, {"max_depth": True}, {"max_reentry": 1.5}, [1]):
        with pytest.raises(UsageError):
            Budgets.of(raw)


def test_a_node_cannot_raise_its_own_budget_or_clear_the_trace():
    """Bookkeeping that a node returns is ignored; its own keys under _internal are kept."""
    forged = {"step_count": -99, "budgets": {"max_steps": 999}, "decision_trace": [], "mode": "x"}
    registry = NodeRegistry()
    registry.register(node("forger", "main", {"_internal": forged}, writes=["_internal"]))
    final = both(registry, limited(max_steps=4))
    assert final["_internal"]["step_count"] == 5
    assert final["_internal"]["budgets"]["max_steps"] == 4
    assert len(trace(final)) == 3
    assert final["_internal"]["mode"] == "x"


def test_an_endless_flat_graph_in_the_native_loop_is_named():
    """Without budgets and without an iteration limit the native loop gives up by itself and says where."""

    class Endless:
        async def run(self, state, config=None):
            return {"_internal": {"decision": "again"}}

    run = run_registry(looping(), fresh(), entrypoint="main", supervisor_factory=lambda name, llm: Endless())
    with pytest.raises(UsageError, match="10000 steps"):
        asyncio.run(run)
