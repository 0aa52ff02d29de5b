"""Stop semantics: STOP_LOCAL returns to the parent, STOP_GLOBAL unwinds every level, answers are never lost."""

from __future__ import annotations

import pytest

from harness.supervisor import GenericSupervisor, HierarchicalDecision, NodeRegistry
from tests.supervisor.kit import answer, both, fashion, fresh, handlers, kinds, node, once, stop_reason, subgraph, trace


def two_levels(leaf_answer, *, leaf_terminal=True):
    registry = NodeRegistry()
    registry.register(node("leaf", "inner", leaf_answer, is_terminal=leaf_terminal))
    subgraph(registry, "inner", supervisors=["inner"], nodes=["leaf"])
    subgraph(registry, "outer", supervisors=["outer"], nodes=[])
    return registry


def test_a_terminal_response_two_levels_down_ends_the_whole_turn():
    """A supervisor that sees a terminal response at depth two ends the session; neither parent is asked again."""
    registry = two_levels(answer("final word", "final"), leaf_terminal=False)
    asked: list[str] = []

    def factory(name, llm):
        def handler(state):
            asked.append(name)
            return {"main": "call_subgraph::outer", "outer": "call_subgraph::inner"}.get(name)

        return GenericSupervisor(
            name, registry=registry, explicit_routing_handler=handler, terminal_response_types={"final"}
        )

    final = both(registry, fresh(), supervisor_factory=factory)
    assert asked == ["main", "outer", "inner"] * 2  # once for each driver
    assert kinds(final)[-1] == ("STOP_GLOBAL", "done")
    assert trace(final)[-1]["depth"] == 2
    assert trace(final)[-1]["reason"] == "terminal_state: response_type 'final' is terminal"
    assert stop_reason(final) is None
    assert final["response"] == {"response_type": "final", "response_message": "final word"}
    assert final["_internal"]["call_stack"] == []
    assert final["_internal"]["decision"] == "done"


def test_a_handler_may_stop_globally_from_any_depth():
    """HierarchicalDecision(STOP_GLOBAL) at depth two ends everything with its own reason, and is no safe stop."""
    registry = two_levels(answer("unused"))
    stop = HierarchicalDecision(decision_kind="STOP_GLOBAL", reason="the user hung up")
    table = {"main": "call_subgraph::outer", "outer": "call_subgraph::inner", "inner": lambda state: stop}
    final = both(registry, fresh(), supervisor_factory=handlers(registry, table))
    assert kinds(final) == [("SUBGRAPH", "outer"), ("SUBGRAPH", "inner"), ("STOP_GLOBAL", "done")]
    assert trace(final)[-1]["reason"] == "explicit_routing: the user hung up"
    assert final["response"] == {}


def test_done_in_a_child_returns_to_the_parent():
    """STOP_LOCAL ends one level: the parent is asked next and may go on."""
    registry = two_levels(answer("inner answer"))
    registry.register(
        node("after", "main", answer("after"), when={"response.response_type": "answer"}, is_terminal=True)
    )
    table = {"main": once("call_subgraph::outer", then=""), "outer": once("call_subgraph::inner")}
    final = both(registry, fresh(), supervisor_factory=handlers(registry, table))
    assert kinds(final) == [
        ("SUBGRAPH", "outer"),
        ("SUBGRAPH", "inner"),
        ("NODE", "leaf"),
        ("STOP_LOCAL", "done"),
        ("NODE", "after"),
    ]
    assert final["response"]["response_message"] == "after"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (
            {"response_message": "m", "response_data": {"a": 1}},
            {"response_message": "m", "response_data": {"a": 1}},
        ),
        ({"response_data": {"a": 1}}, {"response_message": "cycle_detected", "response_data": {"a": 1}}),
        ({"response_message": ""}, {"response_message": "cycle_detected"}),
        ({}, {"response_message": "cycle_detected"}),
    ],
)
def test_a_safe_stop_keeps_what_a_child_gave(given, kept):
    """Message and data of a child survive a safe stop; the reason is the message only where there is none."""
    registry = NodeRegistry()
    registry.register(node("leaf", "child", {"response": given}, is_terminal=True))
    subgraph(registry, "child", supervisors=["child"])
    final = both(registry, fresh(), supervisor_factory=handlers(registry, {"main": "call_subgraph::child"}))
    assert final["response"] == {"response_type": "terminal", **kept}


def test_a_safe_stop_inside_a_child_that_may_not_write_the_response_still_answers():
    """The terminal response belongs to the top: a contract without `response` does not hide the stop, nor overwrite."""
    registry = fashion()
    registry.register(node("spin", "blind", {"work": {"n": 1}}, writes=["work"]))
    subgraph(registry, "blind", supervisors=["blind"], writes=["work"])

    def main(state):
        return "call_subgraph::blind" if state["response"] else "call_subgraph::fashion"

    state = fresh(_internal={"budgets": {"max_steps": 12}})
    final = both(registry, state, supervisor_factory=handlers(registry, {"main": main}))
    assert stop_reason(final) == "max_steps_exceeded"
    assert trace(final)[-1]["depth"] == 1
    assert final["response"] == {"response_type": "terminal", "response_message": "clean lines"}
    assert final["work"] == {"n": 1}


def test_a_terminal_node_at_the_top_ends_the_turn_without_asking_again():
    """is_terminal ends the level; at the top the turn."""
    registry = NodeRegistry()
    registry.register(node("last", "main", answer("bye"), is_terminal=True))
    final = both(registry, fresh())
    assert kinds(final) == [("NODE", "last")]
    assert final["_internal"]["step_count"] == 2
    assert final["_internal"]["phase"] == "ended"


def test_a_subgraph_with_no_nodes_returns_at_once():
    """nodes=[] is none: its supervisor finds nothing and hands back."""
    registry = fashion()
    subgraph(registry, "empty", supervisors=["fashion"], nodes=[], entrypoint="fashion")
    state = fresh(_internal={"budgets": {"max_reentry": 1}})
    final = both(registry, state, supervisor_factory=handlers(registry, {"main": "call_subgraph::empty"}))
    assert kinds(final)[:2] == [("SUBGRAPH", "empty"), ("STOP_LOCAL", "done")]
    assert trace(final)[1]["reason"] == "fallback: nothing matched"


def test_nodes_none_is_every_node_and_a_list_is_exactly_that():
    """A child's supervisor sees only the members of its subgraph, even if more of its nodes match."""
    registry = NodeRegistry()
    for name, text in (("first", "1"), ("second", "2")):
        registry.register(node(name, "team", answer(text), is_terminal=True))
    subgraph(registry, "all", supervisors=["team"], nodes=None, entrypoint="team")
    subgraph(registry, "some", supervisors=["team"], nodes=["second"], entrypoint="team")
    for target, text in (("all", "1"), ("some", "2")):
        table = {"main": once(f"call_subgraph::{target}")}
        final = both(registry, fresh(), supervisor_factory=handlers(registry, table))
        assert final["response"]["response_message"] == text


def test_the_entry_of_a_subgraph_may_be_a_node_or_a_suffixed_supervisor():
    """An entry node runs before its supervisor is asked; `<name>_supervisor` means the supervisor."""
    registry = NodeRegistry()
    registry.register(node("door", "team", {"work": {"open": True}}, writes=["work"], triggers=()))
    registry.register(node("room", "team", answer("in"), when={"work.open": True}, is_terminal=True))
    subgraph(registry, "byNode", supervisors=["team"], entrypoint="door", writes=["response", "work"])
    subgraph(registry, "bySuffix", supervisors=["team"], entrypoint="team_supervisor")
    table = {"main": once("call_subgraph::byNode")}
    final = both(registry, fresh(), supervisor_factory=handlers(registry, table))
    assert kinds(final)[:2] == [("SUBGRAPH", "byNode"), ("NODE", "room")]
    state = fresh(_internal={"budgets": {"max_reentry": 1}})
    final = both(registry, state, supervisor_factory=handlers(registry, {"main": "call_subgraph::bySuffix"}))
    assert kinds(final)[1] == ("STOP_LOCAL", "done")
