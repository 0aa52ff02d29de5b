"""State is the fold of the log: each fact changes what it is about, and nothing else."""

from __future__ import annotations

import pytest

from harness.errors import IllegalTransition
from harness.model import events as ev
from harness.model.lifecycle import RunStatus, State
from harness.model.state import RunState, evolve, fold, initial
from tests.store.samples import (
    BASE,
    MERGE,
    RUN,
    TREE,
    WORK,
    attempt,
    attempt_finished,
    closed,
    conflicted_step,
    created,
    failed,
    failed_step,
    integration_failed,
    merged,
    merged_step,
    of,
    run_created,
    run_finished,
    run_started,
    started,
    waiting,
)

TS = "2026-01-02T03:04:05.678901Z"


def after(*facts: ev.Fact) -> RunState:
    """The state after a run was created and these facts happened."""
    state = initial(RUN)
    for fact in (run_created(), *facts):
        state = evolve(state, ev.seal(fact, run_id=RUN, seq=state.last_seq + 1, prev_hash=state.last_hash, ts=TS))
    return state


def test_a_created_run_stands_at_its_base():
    """Nothing is merged yet: the head is the base."""
    state = after()
    assert (state.status, state.base, state.head, state.created_at) == (RunStatus.RUNNING, BASE, BASE, TS)
    assert (state.steps, state.superseded, state.exit_code) == ({}, (), None)


def test_a_merged_step_moves_the_head_and_is_done_when_closed():
    """Completed is not done: closed is."""
    who = of(0)
    merging = after(*merged_step(**who)[:-1])
    assert (merging.head, merging.steps["0"].state, merging.steps["0"].done) == (MERGE, State.COMPLETED, False)
    step = after(*merged_step(**who)).steps["0"]
    assert (step.state, step.final_status, step.close_reason, step.done) == (State.CLOSED, "completed", "merged", True)
    assert (step.commit, step.tree, step.merge_commit, step.changed_paths) == (WORK, TREE, MERGE, ("a.py", "b.py"))
    assert (step.started_at, step.ended_at, step.report) == (TS, TS, "r.md")


def test_a_conflict_is_the_failure_of_the_child_and_moves_nothing():
    """The paths are kept, the head stays."""
    state = after(*conflicted_step(**of(1)))
    step = state.steps["1"]
    assert (state.head, step.final_status, step.close_reason) == (BASE, "failed", "merge_conflict")
    assert step.conflicts == ({"path": "a.py", "message": "content"},)


def test_a_child_may_fail_before_it_starts():
    """A step whose need failed is closed without running."""
    step = after(created(**of(0)), failed(**of(0)), closed("failed", "dependency_failed", **of(0))).steps["0"]
    assert (step.state, step.attempts, step.close_reason) == (State.CLOSED, 0, "dependency_failed")


@pytest.mark.parametrize(
    "facts",
    [
        [started(**of(0))],
        [created(**of(0)), waiting(**of(0))],
        [created(**of(0)), merged(**of(0))],
        [created(**of(0)), attempt(**of(0))],
        [created(**of(0)), started(**of(0)), started(**of(0))],
        [created(**of(0)), started(**of(0)), merged(**of(0))],
        [created(**of(0)), started(**of(0)), closed("failed", **of(0))],
        [created(**of(0)), failed(**of(0)), closed("completed", **of(0))],
        [*merged_step(**of(0))[:-1], closed("failed", **of(0))],
        [*merged_step(**of(0)), closed("completed", **of(0))],
        [*merged_step(**of(0)), merged(**of(0))],
        [*merged_step(**of(0)), created(**of(0, again=1))],
        [created(**of(0)), created(**of(0, again=1))],
        [*conflicted_step(**of(0)), integration_failed(**of(0))],
        [*failed_step(**of(0)), created(**of(0))],
        [*failed_step(**of(0)), created(**of(0, again=1)), started(**of(0))],
        [run_created()],
    ],
)
def test_what_the_lifecycle_does_not_know_is_refused(facts):
    """The last fact of each list cannot happen."""
    after(*facts[:-1])
    with pytest.raises(IllegalTransition):
        after(*facts)


def test_the_first_event_of_a_run_is_its_creation():
    """A log that begins otherwise, even with a fact of a newer version, does not fold."""
    line = ev.seal(run_started(), run_id=RUN, seq=1, prev_hash=ev.GENESIS, ts=TS)
    with pytest.raises(IllegalTransition, match="run r1 does not exist"):
        fold(RUN, [line])


def test_a_step_that_failed_may_be_tried_by_another_sub_agent():
    """The old one is superseded, not forgotten."""
    state = after(*failed_step(**of(0)), *merged_step(**of(0, again=1)))
    assert [(step.sub_agent_id, step.final_status) for step in state.superseded] == [("r1/0", "failed")]
    assert (state.steps["0"].sub_agent_id, state.steps["0"].final_status) == ("r1/0.1", "completed")


def test_a_dead_coordinator_costs_a_recovery_not_a_retry():
    """An attempt that was open when the next coordinator came did not fail."""
    open_attempt = [created(**of(0)), started(**of(0)), attempt(**of(0))]
    step = after(*open_attempt, run_started(2)).steps["0"]
    assert (step.recoveries, step.failed_attempts, step.open_attempt) == (1, 0, False)
    ended = after(*open_attempt, attempt_finished(ok=False, reason="timeout", **of(0)), run_started(2)).steps["0"]
    assert (ended.recoveries, ended.failed_attempts, ended.message) == (0, 1, "said so")


def test_a_rate_limit_consumes_no_retry():
    """It pauses."""
    facts = [created(**of(0)), started(**of(0)), attempt(**of(0))]
    step = after(*facts, attempt_finished(ok=False, reason="rate_limited", **of(0))).steps["0"]
    assert step.failed_attempts == 0


def test_a_finished_run_may_be_taken_up_again_and_landed():
    """Resuming reopens the outcome; landing names the target."""
    finished = after(run_finished("failed", 1))
    assert (finished.status, finished.exit_code, finished.finished_at) == (RunStatus.FAILED, 1, TS)
    resumed = after(run_finished("failed", 1), run_started(2))
    assert (resumed.status, resumed.exit_code, resumed.finished_at) == (RunStatus.RUNNING, None, None)
    landed = after(run_finished(), ev.RunLanded(target="refs/heads/main", old=BASE, new=MERGE))
    assert (landed.landed, landed.target) == (MERGE, "refs/heads/main")


def test_work_and_workspaces_are_remembered_until_they_are_gone():
    """What must be cleaned up or brought back is part of the state."""
    who = of(0)
    begun = [created(**who), started(**who)]
    opened = [
        ev.WorkspacePreparing(**who, path=path, start_point=BASE, purpose="attempt")
        for path in ("/w/1", "/w/2", "/w/1")
    ]
    kept = ev.WorkKept(**who, ref="refs/orchestrix/keep/r1/0/attempt-1", commit=WORK, why="retry")
    step = after(*begun, *opened, kept, ev.WorkspaceRemoved(**who, path="/w/2")).steps["0"]
    assert (step.workspaces, step.kept) == (("/w/1",), ("refs/orchestrix/keep/r1/0/attempt-1",))


def test_steps_are_ordered_by_number():
    """Step 10 comes after step 9."""
    state = after(*(created(**of(idx)) for idx in (10, 9, 2)))
    assert [step.task_id for step in state.ordered()] == ["2", "9", "10"]


def test_a_fact_of_a_newer_version_changes_only_the_end_of_the_log():
    """Older programs fold newer logs."""
    line = ev.Envelope(**{**ev.seal(run_started(), run_id=RUN, seq=2, prev_hash="", ts=TS).as_dict(), "type": "later"})
    state = evolve(after(), line)
    assert (state.last_seq, state.coordinators) == (2, 0)
