"""Turns: counters belong to one invocation, by hand or on a checkpointed thread."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from harness.supervisor import NodeRegistry
from tests.supervisor.kit import answer, both, compiled, fashion, fresh, handlers, node, once, trace


class Sliced(TypedDict, total=False):
    request: dict[str, Any]
    response: dict[str, Any]
    _internal: dict[str, Any]


def test_stale_counters_without_a_mark_are_not_believed():
    """A state that claims 40 steps and two visits starts at zero all the same; its budgets are kept."""
    registry = fashion()
    stale = {
        "step_count": 40,
        "visited_subgraphs": {"fashion": 2},
        "call_stack": [{"subgraph_id": "x", "depth": 1, "entry_step": 1, "locals": {}}] * 5,
        "decision_trace": [{"step": 1}],
        "main_iteration": 10,
        "budgets": {"max_steps": 9},
        "mine": 1,
    }
    options = {"supervisor_factory": handlers(registry, {"main": once("call_subgraph::fashion")})}
    final = both(registry, fresh(_internal=stale), **options)
    assert final["_internal"]["step_count"] == 5
    assert final["_internal"]["visited_subgraphs"] == {"fashion": 1}
    assert final["_internal"]["main_iteration"] == 2
    assert final["_internal"]["budgets"] == {"max_depth": 2, "max_steps": 9, "max_reentry": 2}
    assert final["_internal"]["mine"] == 1


@pytest.mark.parametrize(
    "state", [{}, {"_internal": None, "response": None}, {"_internal": [], "response": "odd", "request": 3}]
)
def test_a_poor_state_is_enough(state):
    """Missing or unusable slices count as empty; nothing breaks on them."""
    registry = fashion()
    options = {"supervisor_factory": handlers(registry, {"main": "call_subgraph::fashion"})}
    final = both(registry, state, **options)
    assert final["response"] == {"response_type": "terminal", "response_message": "clean lines"}


def test_a_flat_graph_does_not_run_out_of_iterations_over_many_turns():
    """Twelve turns on one state, each ended by a terminal node, all run."""
    registry = NodeRegistry()
    body = lambda inputs: {"work": {"n": inputs.get_slice("work").get("n", 0) + 1}}  # noqa: E731 - one expression
    registry.register(node("count", "main", body, reads=["work"], writes=["work"], is_terminal=True))
    state = fresh(work={})
    for _ in range(12):
        state = both(registry, state, enable_subgraphs=False)
    assert state["work"] == {"n": 12}


def test_after_a_stop_without_an_answer_the_next_turn_can_answer():
    """The reason of the last stop is not taken for this turn's answer, and does not end it."""
    registry = fashion()
    options = {"supervisor_factory": handlers(registry, {"main": once("call_subgraph::fashion")})}
    stopped = both(registry, fresh(_internal={"budgets": {"max_steps": 1}}), **options)
    assert stopped["response"] == {"response_type": "terminal", "response_message": "max_steps_exceeded"}
    stopped["_internal"]["budgets"] = {"max_steps": 20}
    final = both(registry, stopped, **options)
    assert final["response"] == {"response_type": "fashion_trend", "response_message": "clean lines"}


def test_a_terminal_answer_that_the_caller_left_in_the_state_still_ends_the_turn():
    """Only the harness's own stop is cleared; a terminal response of a node is the caller's to reset."""
    registry = fashion()
    options = {"supervisor_factory": handlers(registry, {"main": "call_subgraph::fashion"})}
    final = both(registry, fresh(response={"response_type": "terminal"}), **options)
    assert len(trace(final)) == 1


@pytest.mark.parametrize("state_class", [None, Sliced])
def test_a_second_turn_on_a_thread_starts_afresh(state_class):
    """With a checkpointer the second input finds the old bookkeeping in the thread, and does not count on it."""
    registry = fashion()
    app = compiled(
        registry,
        supervisors=["main"],
        state_class=state_class,
        enable_subgraphs=True,
        supervisor_factory=handlers(registry, {"main": "call_subgraph::fashion"}),
        checkpointer=InMemorySaver(),
    )
    thread = {"configurable": {"thread_id": "t"}}

    async def turns():
        first = await app.ainvoke(fresh(), thread)
        return first, await app.ainvoke({"request": {"again": 1}, "response": {}}, thread)

    first, second = asyncio.run(turns())
    assert second["_internal"]["step_count"] == first["_internal"]["step_count"] == 10
    assert trace(second) == trace(first)


def test_a_turn_after_one_that_crashed_starts_afresh():
    """A node that raised leaves its thread between decision and result; new input is a new turn."""
    registry = NodeRegistry()

    def body(inputs):
        if inputs.get_slice("request").get("crash"):
            raise RuntimeError("crash")
        return answer("fine")

    registry.register(node("work", "main", body, is_terminal=True))
    app = compiled(
        registry, supervisors=["main"], enable_subgraphs=True, state_class=Sliced, checkpointer=InMemorySaver()
    )
    thread = {"configurable": {"thread_id": "t"}}

    async def turns():
        with pytest.raises(RuntimeError, match="crash"):
            await app.ainvoke(fresh(request={"crash": True}), thread)
        return await app.ainvoke({"request": {}}, thread)

    final = asyncio.run(turns())
    assert final["response"]["response_message"] == "fine"
    assert final["_internal"]["step_count"] == 2
    assert len(trace(final)) == 1
