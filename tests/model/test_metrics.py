"""Metrics are read off the state, and their text is what a scraper expects."""

from __future__ import annotations

from harness.model import events as ev
from harness.model import exposition, metrics
from harness.model.metrics import Metrics
from harness.model.state import RunState, evolve, initial
from tests.store.samples import (
    RUN,
    attempt,
    attempt_finished,
    created,
    failed_step,
    merged_step,
    of,
    run_created,
    run_started,
    started,
)


def after(*facts: ev.Fact) -> RunState:
    """The state after these facts, one second apart."""
    state = initial(RUN)
    for seq, fact in enumerate([run_created(steps=4), run_started(), *facts], 1):
        envelope = ev.seal(
            fact, run_id=RUN, seq=seq, prev_hash=state.last_hash, ts=f"2026-01-02T03:04:{seq:02}.000000Z"
        )
        state = evolve(state, envelope)
    return state


def test_a_run_that_has_not_begun_has_a_queue_only() -> None:
    """No latency before the first task ended."""
    state = after(created(**of(0)), created(**of(1)))
    assert metrics.measure([state]) == Metrics(2, 0, 0, 0, None)


def test_every_task_counts_where_it_is() -> None:
    """One merged, one failed, one at work after a failure, one waiting to start."""
    state = after(
        *merged_step(**of(0)),
        *failed_step(**of(1)),
        *(created(**of(2)), created(**of(3))),
        *(started(**of(2)), attempt(**of(2)), attempt_finished(ok=False, reason="timeout", **of(2)), attempt(**of(2))),
    )
    assert metrics.measure([state]) == Metrics(
        queue_length=1, active_tasks=1, failed_tasks=2, subagents_active=1, average_task_latency=3.0
    )


def test_runs_add_up() -> None:
    """A run and its nested ones are measured together."""
    state = after(created(**of(0)), started(**of(0)), attempt(**of(0)))
    assert metrics.measure([state, state]) == Metrics(0, 2, 0, 2, None)


def test_prometheus_can_read_it() -> None:
    """A help line, a type and a sample for each; labels are escaped, what is not known is left out."""
    text = exposition.text(
        [({"run_id": 'a"\\\n'}, Metrics(1, 2, 3, 4, None)), ({"run_id": "b"}, Metrics(0, 0, 0, 0, 1.5))]
    )
    assert text == (
        "# HELP orchestrix_queue_length Tasks that wait to be started.\n"
        "# TYPE orchestrix_queue_length gauge\n"
        'orchestrix_queue_length{run_id="a\\"\\\\\\n"} 1\n'
        'orchestrix_queue_length{run_id="b"} 0\n'
        "# HELP orchestrix_active_tasks Tasks that were started and are not closed.\n"
        "# TYPE orchestrix_active_tasks gauge\n"
        'orchestrix_active_tasks{run_id="a\\"\\\\\\n"} 2\n'
        'orchestrix_active_tasks{run_id="b"} 0\n'
        "# HELP orchestrix_failed_tasks Tasks with at least one failure.\n"
        "# TYPE orchestrix_failed_tasks gauge\n"
        'orchestrix_failed_tasks{run_id="a\\"\\\\\\n"} 3\n'
        'orchestrix_failed_tasks{run_id="b"} 0\n'
        "# HELP orchestrix_subagents_active Sub-agents with an attempt under way.\n"
        "# TYPE orchestrix_subagents_active gauge\n"
        'orchestrix_subagents_active{run_id="a\\"\\\\\\n"} 4\n'
        'orchestrix_subagents_active{run_id="b"} 0\n'
        "# HELP orchestrix_average_task_latency_seconds Seconds from a task's start to its merge or failure, on average.\n"
        "# TYPE orchestrix_average_task_latency_seconds gauge\n"
        'orchestrix_average_task_latency_seconds{run_id="b"} 1.5\n'
    )
