"""Allowlists: None is unrestricted, empty allows nothing, done needs no entry."""

from __future__ import annotations

import pytest

from harness.supervisor import GenericSupervisor, NodeRegistry
from tests.supervisor.kit import answer, both, fashion, fresh, handlers, kinds, node, once, stop_reason, subgraph, trace


def calling_once(registry):
    return handlers(registry, {"main": once("call_subgraph::fashion")})


@pytest.mark.parametrize("allowed", [None, {"fashion"}, ["fashion", "done"], {"call_subgraph::fashion"}])
def test_what_is_on_the_list_runs(allowed):
    """A subgraph is named by its id (its route works too); None restricts nothing; done is always allowed."""
    registry = fashion()
    final = both(registry, fresh(), supervisor_factory=calling_once(registry), supervisor_allowlists={"main": allowed})
    assert kinds(final) == [("SUBGRAPH", "fashion"), ("NODE", "trend_node"), ("STOP_GLOBAL", "done")]
    assert stop_reason(final) is None


@pytest.mark.parametrize("allowed", [set(), [], {"done"}, {"other"}])
def test_what_is_not_on_the_list_is_a_safe_stop(allowed):
    """A choice outside the list ends the turn before it runs, with the reason in the trace."""
    registry = fashion()
    final = both(registry, fresh(), supervisor_factory=calling_once(registry), supervisor_allowlists={"main": allowed})
    assert kinds(final) == [("STOP_GLOBAL", "fashion")]
    assert stop_reason(final) == "allowlist_violation"
    assert trace(final)[0]["reason"].startswith("'fashion' is not on the allowlist of 'main'")
    assert final["response"] == {"response_type": "terminal", "response_message": "allowlist_violation"}


def test_a_node_by_rule_is_held_to_the_list_too():
    """A trigger match outside the list is a violation, in a flat graph as well."""
    registry = NodeRegistry()
    registry.register(node("work", "main", answer("x")))
    final = both(registry, fresh(), enable_subgraphs=False, supervisor_allowlists={"main": set()})
    assert stop_reason(final) == "allowlist_violation"
    assert "budgets" not in final["_internal"]


def test_a_violation_in_a_child_ends_every_level():
    """An allowlist binds the supervisor by name wherever it runs; the stop unwinds."""
    registry = fashion()
    final = both(registry, fresh(), supervisor_factory=calling_once(registry), supervisor_allowlists={"fashion": set()})
    assert kinds(final) == [("SUBGRAPH", "fashion"), ("STOP_GLOBAL", "trend_node")]
    assert trace(final)[-1]["depth"] == 1
    assert final["_internal"]["call_stack"] == []
    assert final["response"]["response_type"] == "terminal"


def test_a_supervisors_own_list_comes_first():
    """A supervisor object with an allowlist is bound by it, an empty one included."""
    registry = fashion()

    def factory(name, llm):
        handler = once("call_subgraph::fashion") if name == "main" else None
        return GenericSupervisor(
            name, registry=registry, explicit_routing_handler=handler, allowlist=set() if name == "main" else None
        )

    final = both(registry, fresh(), supervisor_factory=factory, supervisor_allowlists={"main": {"fashion"}})
    assert stop_reason(final) == "allowlist_violation"


def test_a_supervisors_own_list_is_a_safe_stop_in_a_plain_flat_graph_too():
    """Even where nothing else is traced, the stop is: reason in the trace, terminal response."""
    registry = NodeRegistry()
    registry.register(node("work", "main", answer("x")))
    final = both(
        registry,
        fresh(),
        enable_subgraphs=False,
        supervisor_factory=lambda name, llm: GenericSupervisor(name, registry=registry, allowlist=[]),
    )
    assert stop_reason(final) == "allowlist_violation"
    assert final["response"]["response_type"] == "terminal"


def test_an_unknown_choice_is_a_violation_with_a_list_and_a_fallback_without():
    """A custom supervisor that names nothing real ends its level; with an allowlist it is a violation."""

    class Lost:
        async def run(self, state, config=None):
            return {"_internal": {"decision": "nowhere"}}

    registry = fashion()
    final = both(registry, fresh(), supervisor_factory=lambda name, llm: Lost())
    assert kinds(final) == [("FALLBACK", "nowhere")]
    assert trace(final)[0]["reason"] == "'nowhere' is not a target of supervisor 'main' at this level"
    assert final["response"] == {}
    listed = {"main": {"fashion"}}
    final = both(registry, fresh(), supervisor_factory=lambda name, llm: Lost(), supervisor_allowlists=listed)
    assert stop_reason(final) == "allowlist_violation"


def test_a_node_allowlist_thins_the_top_level():
    """node_allowlist takes nodes out of the graph: they are no candidates."""
    registry = NodeRegistry()
    registry.register(node("first", "main", answer("1"), is_terminal=True))
    registry.register(node("second", "main", answer("2"), is_terminal=True))
    subgraph(registry, "unused", supervisors=["main"])
    final = both(registry, fresh(), node_allowlist={"second"})
    assert final["response"]["response_message"] == "2"
