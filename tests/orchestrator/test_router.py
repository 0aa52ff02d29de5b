"""The router: the same state, policies and time give the same decisions, in the order of the specification."""

from __future__ import annotations

from datetime import timedelta

import pytest
from orchestrator.boards import NOW, closed, plan_of, policies, state_of, step

from harness.model.lifecycle import State
from harness.orchestrator import router
from harness.orchestrator.board import Board
from harness.orchestrator.router import Decision


def chosen(decisions: list[Decision]) -> list[tuple[str, str | None]]:
    return [(decision.node, decision.task) for decision in decisions]


def test_twelve_tasks_are_taken_in_the_order_of_their_numbers():
    """10 comes after 9, not after 1."""
    plan = plan_of(*({} for _ in range(12)))
    state = state_of(*(step(idx) for idx in reversed(range(12))))
    taken = router.route(state, policies(plan, jobs=12), NOW)
    assert chosen(taken) == [("task_executor", str(idx)) for idx in range(12)]


def test_an_explicit_priority_goes_first():
    """The higher number, then the order of the plan."""
    plan = plan_of({}, {"priority": 5}, {}, {"priority": -1}, {"priority": 5})
    state = state_of(*(step(idx) for idx in range(5)))
    assert [task for _, task in chosen(router.route(state, policies(plan, jobs=5), NOW))] == ["1", "4", "0", "2", "3"]


def test_no_more_tasks_are_taken_than_there_are_places():
    """Those that are under way count."""
    plan = plan_of({}, {}, {}, {})
    state = state_of(step(0, state=State.RUNNING, decided="task_executor"), step(1), step(2), step(3))
    assert chosen(router.route(state, policies(plan, jobs=2), NOW)) == [("task_executor", "1")]


def test_a_task_waits_for_what_it_needs():
    """Parked is enough; integration has its own order."""
    plan = plan_of({}, {"needs": [0]}, {"needs": [1]})
    parked = step(0, state=State.WAITING_FOR_MERGE, decided="task_updater")
    assert chosen(router.route(state_of(parked, step(1), step(2)), policies(plan), NOW)) == [("task_executor", "1")]


def test_results_are_integrated_in_plan_order():
    """A parked step waits for every earlier one to be closed."""
    plan = plan_of({}, {}, {})
    parked = step(1, state=State.WAITING_FOR_MERGE)
    running = step(0, state=State.RUNNING, decided="task_executor")
    assert router.route(state_of(running, parked, closed(2)), policies(plan), NOW) == []
    assert chosen(router.route(state_of(closed(0), parked, closed(2)), policies(plan), NOW)) == [("task_updater", "1")]


def test_dependants_of_a_failed_task_are_given_up_before_anything_else_starts():
    """Also one that is under way; what does not depend on it goes on."""
    plan = plan_of({}, {"needs": [0]}, {"needs": [1]}, {})
    state = state_of(
        closed(0, "failed"), step(1, state=State.RUNNING, decided="task_executor"), step(2), step(3, last_reason=None)
    )
    decisions = router.route(state, policies(plan), NOW)
    assert chosen(decisions) == [("task_planner", "1"), ("task_planner", "2"), ("task_executor", "3")]
    assert decisions[0].reason == "step 1 needs step 0, which failed"


def test_a_plan_that_stops_at_a_failure_gives_up_what_comes_after_it():
    """What comes before it goes on."""
    plan = plan_of({}, {}, {}, on_failure="stop")
    state = state_of(step(0), closed(1, "failed"), step(2))
    assert chosen(router.route(state, policies(plan), NOW)) == [("task_planner", "2"), ("task_executor", "0")]


def test_a_failed_attempt_goes_to_the_error_fallback_before_other_tasks_start():
    """Error handling comes before execution."""
    plan = plan_of({}, {})
    state = state_of(step(0), step(1, state=State.RUNNING, attempts=1, failed_attempts=1, last_reason="timeout"))
    decisions = router.route(state, policies(plan), NOW)
    assert chosen(decisions) == [("error_fallback", "1"), ("task_executor", "0")]
    assert decisions[0].persona == "AGENT_PERFORM_ERROR_FALLBACK"


@pytest.mark.parametrize(
    ("ahead_ms", "eligible"), [(1_500, False), (1, False), (0, True), (-5_000, True), (3_600_000, True)]
)
def test_a_task_is_left_alone_until_its_pause_is_over(ahead_ms: int, *, eligible: bool):
    """A pause never lasts longer than it was meant to: a clock that was set back does not stop a run."""
    due = NOW + timedelta(milliseconds=ahead_ms)
    paused = step(
        0, state=State.RUNNING, attempts=1, last_reason="timeout", next_attempt_at=due.isoformat(), pause_ms=2_000
    )
    decisions = router.route(state_of(paused), policies(plan_of({})), NOW)
    assert chosen(decisions) == ([("task_executor", "0")] if eligible else [])
    board = Board.of(state_of(paused), policies(plan_of({})))
    assert router.next_due(board, NOW) == (None if eligible else timedelta(milliseconds=ahead_ms))


def test_when_every_task_is_closed_the_run_is_finalized():
    """Whatever became of them."""
    plan = plan_of({}, {})
    assert chosen(router.route(state_of(closed(0), closed(1, "failed")), policies(plan), NOW)) == [("finalizer", None)]


def test_routing_is_a_function():
    """Asked twice, the answer is the same and the state is as it was."""
    plan = plan_of({}, {"needs": [0]}, {})
    state = state_of(step(0), step(1), step(2))
    before = repr(state)
    assert router.route(state, policies(plan), NOW) == router.route(state, policies(plan), NOW)
    assert repr(state) == before
