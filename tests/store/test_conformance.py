"""What every implementation of the Store port must do."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.errors import Busy, Fenced, IllegalTransition, NotFound
from harness.model import limits
from harness.model.events import GENESIS, canonical, verify
from harness.model.lifecycle import RunStatus, State
from harness.model.state import fold
from harness.ports import Lease
from harness.store import identity
from tests.store.samples import (
    BASE,
    FAR_AWAY,
    MERGE,
    OTHER,
    RUN,
    attempt,
    closed,
    conflicted_step,
    created,
    failed,
    failed_step,
    merged_step,
    of,
    run_created,
    run_finished,
    run_started,
    started,
    tool_called,
)


def test_appended_facts_come_back_as_a_verified_gap_free_log(store):
    """The log holds what was appended, numbered from 1, chained from the genesis hash."""
    lease = store.acquire(RUN, FAR_AWAY)
    store.append(lease, [run_created(), run_started()])
    store.append(lease, merged_step(**of(0)))
    log = list(store.events(RUN))
    assert [line.seq for line in log] == list(range(1, 10))
    assert [line.type for line in log] == [
        "run.created",
        "run.started",
        "agent.subagent_created",
        "agent.subagent_started",
        "agent.subagent_attempt",
        "attempt.finished",
        "agent.subagent_waiting_for_merge",
        "agent.worktree_merged",
        "agent.subagent_closed",
    ]
    assert log[0].prev_hash == GENESIS
    assert {line.ts for line in log} == {"2026-01-02T03:04:05.678901Z"}
    assert verify(log) == []
    assert store.audit(RUN) == []


def test_the_state_is_the_fold_of_the_log(store):
    """What append returns, what state returns and the fold of the events are one value."""
    lease = store.acquire(RUN, FAR_AWAY)
    facts = [run_created(), *merged_step(**of(0)), *conflicted_step(**of(1)), run_finished("failed", 4)]
    returned = store.append(lease, facts)
    assert returned == store.state(RUN) == fold(RUN, store.events(RUN))
    assert (returned.status, returned.exit_code, returned.head) == (RunStatus.FAILED, 4, MERGE)
    assert [step.state for step in returned.ordered()] == [State.CLOSED, State.CLOSED]
    assert [step.final_status for step in returned.ordered()] == ["completed", "failed"]


def test_a_replaced_sub_agent_stays_in_the_state_and_in_the_audit(store):
    """A retry after failure supersedes the old sub-agent without forgetting it."""
    lease = store.acquire(RUN, FAR_AWAY)
    state = store.append(lease, [run_created(), *failed_step(**of(0)), *merged_step(**of(0, again=1))])
    assert [step.sub_agent_id for step in state.superseded] == ["r1/0"]
    assert state.steps["0"].sub_agent_id == "r1/0.1"
    assert store.audit(RUN) == []


@pytest.mark.parametrize(
    "illegal",
    [
        [started(**of(0))],
        [created(**of(0)), attempt(**of(0))],
        [created(**of(0)), closed("completed", **of(0))],
        [created(**of(0)), created(**of(0))],
        [*failed_step(**of(0)), *failed_step(**of(0))],
        [*merged_step(**of(0)), failed(**of(0))],
        [run_created()],
    ],
    ids=[
        "unknown",
        "attempt-before-start",
        "closed-too-early",
        "twice",
        "same-id-again",
        "failed-after-closed",
        "born",
    ],
)
def test_an_illegal_fact_rolls_back_everything_appended_with_it(store, illegal):
    """All of the facts or none: a refused batch leaves neither events nor state behind."""
    lease = store.acquire(RUN, FAR_AWAY)
    before = store.append(lease, [run_created()])
    with pytest.raises(IllegalTransition):
        store.append(lease, [run_started(), *illegal])
    assert store.state(RUN) == before
    assert [line.seq for line in store.events(RUN)] == [1]
    assert store.append(lease, [run_started()]).last_seq == 2
    assert store.audit(RUN) == []


def test_a_run_begins_with_its_creation(store):
    """Any other first fact is refused, and the run still does not exist."""
    lease = store.acquire(RUN, FAR_AWAY)
    with pytest.raises(IllegalTransition, match="does not exist"):
        store.append(lease, [run_started()])
    with pytest.raises(NotFound):
        store.state(RUN)
    assert store.run_ids() == []


def test_an_unknown_run_is_not_found(store):
    """Questions about a run that never was name it; its log is empty."""
    for ask in (store.state, store.audit):
        with pytest.raises(NotFound, match="no run r1"):
            ask(RUN)
    with pytest.raises(NotFound, match="no run r1"):
        store.append(store.acquire(RUN, FAR_AWAY), [])
    assert list(store.events(RUN)) == []


def test_events_continue_after_a_seq(store):
    """A follower asks for what comes after the last line that it saw."""
    lease = store.acquire(RUN, FAR_AWAY)
    store.append(lease, [run_created(), *merged_step(**of(0))])
    assert [line.seq for line in store.events(RUN, after=5)] == [6, 7, 8]
    assert list(store.events(RUN, after=8)) == []


def test_lines_are_the_events_as_canonical_text(store):
    """One line for each event, as the record holds it; its payload and type alone as well."""
    lease = store.acquire(RUN, FAR_AWAY)
    store.append(lease, [run_created(), *merged_step(**of(0)), tool_called("caf\udce9\n\u2028", **of(0))])
    assert list(store.lines(RUN)) == [
        (line.type, canonical(line.payload), canonical(line.as_dict())) for line in store.events(RUN)
    ]


def test_runs_are_listed_in_the_order_of_their_creation(store, clock):
    """Oldest first, also when the clock jumps back between two runs."""
    store.append(store.acquire(OTHER, FAR_AWAY), [run_created()])
    clock.move(-3_600_000)
    store.append(store.acquire(RUN, FAR_AWAY), [run_created()])
    assert store.run_ids() == [OTHER, RUN]


def test_two_runs_have_logs_of_their_own(store):
    """Each run counts from 1 and is chained alone."""
    first, second = store.acquire(RUN, FAR_AWAY), store.acquire(OTHER, FAR_AWAY)
    store.append(first, [run_created()])
    store.append(second, [run_created(), created(**of(0, run=OTHER))])
    store.append(first, [created(**of(0))])
    assert [line.id for line in store.events(RUN)] == ["r1.1", "r1.2"]
    assert [line.id for line in store.events(OTHER)] == ["r2.1", "r2.2"]
    assert store.audit(RUN) == store.audit(OTHER) == []


def test_time_that_runs_backwards_breaks_nothing(store, clock):
    """The order is the seq: timestamps are only told."""
    lease = store.acquire(RUN, FAR_AWAY)
    store.append(lease, [run_created()])
    clock.move(-86_400_000)
    store.append(lease, [run_started()])
    assert [line.ts[:10] for line in store.events(RUN)] == ["2026-01-02", "2026-01-01"]
    assert store.audit(RUN) == []


def test_text_that_utf_8_cannot_hold_is_spelled_out(store):
    """A file name in another encoding never makes an append fail, and a summary stays on one line."""
    lease = store.acquire(RUN, FAR_AWAY)
    who = of(0)
    store.append(lease, [run_created(), created(**who), started(**who)])
    state = store.append(
        lease, [failed(**who).__class__(**who, reason="x", message="caf\udce9\n\x00", paths=["\ud800"])]
    )
    line = list(store.events(RUN))[-1]
    assert line.summary == "step 0 failed: x: caf\\udce9 \x00"
    assert line.payload["paths"] == ["\\ud800"]
    assert state.steps["0"].message == "caf\\udce9\n\x00"
    assert json.loads(json.dumps(line.as_dict()).encode()) == line.as_dict()
    assert store.audit(RUN) == []


def test_threads_share_a_store(store):
    """Appends from many threads are serialised; none is lost."""
    lease = store.acquire(RUN, FAR_AWAY)
    store.append(lease, [run_created(), created(**of(0))])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store.append(lease, [tool_called(str(number), **of(0))]), range(64)))
    messages = [line.payload["message"] for line in store.events(RUN, after=2)]
    assert sorted(messages, key=int) == [str(number) for number in range(64)]
    assert store.audit(RUN) == []


def test_a_live_lease_refuses_a_second_coordinator_and_names_the_first(store):
    """Busy tells pid, host and since when; the epoch stays."""
    mine = identity.this_process()
    lease = store.acquire(RUN, mine)
    with pytest.raises(Busy) as caught:
        store.acquire(RUN, FAR_AWAY)
    assert caught.value.message == (
        f"run r1 is held by process {mine['pid']} on {mine['host']} since 2026-01-02T03:04:05.678901Z"
    )
    assert caught.value.details["holder"] == {**mine, "epoch": 1, "since": "2026-01-02T03:04:05.678901Z"}
    assert store.holder(RUN) == caught.value.details["holder"]
    assert lease == Lease(RUN, 1)


def test_a_lease_from_another_host_lives_as_long_as_its_heartbeat(store, clock):
    """Within the time to live it is alive; after it, who has watched it for as long may take over; a heartbeat renews it."""
    lease = store.acquire(RUN, FAR_AWAY)
    clock.move(limits.LEASE_TTL_MS - 1)
    store.heartbeat(lease)
    clock.move(limits.LEASE_TTL_MS - 1)
    with pytest.raises(Busy):
        store.acquire(RUN, FAR_AWAY)
    assert clock.slept == 0
    clock.move(1)
    assert store.holder(RUN) is None
    assert store.acquire(RUN, FAR_AWAY).epoch == 2
    assert clock.slept * 1_000 == limits.LEASE_TTL_MS


def test_a_heartbeat_far_in_the_future_does_not_hold_a_run_for_ever(store, clock):
    """After the clock jumped back by a day, the lease of another host is watched like an old one."""
    store.acquire(RUN, FAR_AWAY)
    clock.move(-86_400_000)
    assert store.acquire(RUN, FAR_AWAY).epoch == 2


@pytest.mark.parametrize("jump", [-86_400_000, 120_000, 400 * 86_400_000])
def test_a_heartbeat_that_is_seen_to_change_holds_the_run_whatever_two_clocks_say(store, clock, jump):
    """The first clock stands still, the second is far away: one new heartbeat at the last look is enough."""
    lease = store.acquire(RUN, FAR_AWAY)
    began = clock.moment

    def beat():
        if clock.slept * 1_000 >= limits.LEASE_TTL_MS:
            clock.moment = began
            store.heartbeat(lease)
            clock.move(jump)

    clock.meanwhile = beat
    clock.move(jump)
    with pytest.raises(Busy):
        store.acquire(RUN, {**FAR_AWAY, "pid": 4343})
    clock.moment = began
    assert store.append(lease, [run_created()]).last_seq == 1


def test_a_process_that_is_there_holds_its_run_for_everybody_who_looks_once(store, clock):
    """A clock that is wrong by days does not make `status` or `cancel` call a live coordinator gone."""
    store.acquire(RUN, identity.this_process())
    clock.move(400 * 86_400_000)
    assert store.holder(RUN)["epoch"] == 1


def test_a_released_lease_is_free_and_can_append_no_more(store):
    """Release gives the run to the next one and ends the right to append."""
    lease = store.acquire(RUN, identity.this_process())
    store.append(lease, [run_created()])
    store.release(lease)
    assert store.holder(RUN) is None
    for call in (lambda: store.append(lease, [run_started()]), lambda: store.heartbeat(lease)):
        with pytest.raises(Fenced):
            call()
    assert store.acquire(RUN, FAR_AWAY).epoch == 2


def test_an_older_epoch_never_appends_again(store, clock):
    """A paused coordinator that wakes up after a takeover is fenced; its release does not harm the new one."""
    old = store.acquire(RUN, FAR_AWAY)
    store.append(old, [run_created()])
    clock.move(limits.LEASE_TTL_MS)
    new = store.acquire(RUN, {**FAR_AWAY, "pid": 4343})
    with pytest.raises(Fenced, match="epoch 1 is lost; the run is held by process 4343, epoch 2"):
        store.append(old, [run_started()])
    with pytest.raises(Fenced):
        store.heartbeat(old)
    store.release(old)
    assert store.holder(RUN)["epoch"] == 2
    assert store.append(new, [run_started(2)]).last_seq == 2


def test_an_append_without_a_lease_is_fenced(store):
    """A made-up lease has no right."""
    with pytest.raises(Fenced, match="held by nobody"):
        store.append(Lease(RUN, 1), [run_created()])
    assert store.holder(RUN) is None


def test_a_new_run_begins_at_its_base(store):
    """Before anything is merged the head is the base."""
    state = store.append(store.acquire(RUN, FAR_AWAY), [run_created()])
    assert (state.head, state.target, state.created_at) == (BASE, "refs/heads/main", "2026-01-02T03:04:05.678901Z")
