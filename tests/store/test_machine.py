"""Seeded histories: whatever a coordinator tries, memory and SQLite answer the same and the log stays whole."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.errors import OrchestrixError
from harness.model import limits
from harness.model.events import verify
from harness.model.state import fold
from harness.ports import Lease
from harness.store.memory import MemoryStore
from harness.store.sqlite import SqliteStore
from tests.store.samples import (
    FAR_AWAY,
    OTHER,
    RUN,
    HandClock,
    attempt,
    attempt_finished,
    closed,
    created,
    failed,
    integration_failed,
    merged,
    of,
    run_created,
    run_finished,
    run_started,
    started,
    tool_called,
    waiting,
)

STEP_FACTS = (
    created,
    started,
    attempt,
    attempt_finished,
    tool_called,
    waiting,
    failed,
    merged,
    integration_failed,
    lambda **who: closed("completed", **who),
    lambda **who: closed("failed", **who),
)
runs = st.sampled_from([RUN, OTHER])
step_facts = st.builds(
    lambda make, idx, again: lambda run: make(**of(idx, run=run, again=again)),
    st.sampled_from(STEP_FACTS),
    st.integers(0, 2),
    st.integers(0, 1),
)
run_facts = st.sampled_from([run_created, run_started, run_finished]).map(lambda make: lambda run: make())


class TwoStores(RuleBasedStateMachine):
    """Every rule is one call, made on both stores; results, errors included, must be equal."""

    @initialize()
    def open(self) -> None:
        self.clock = HandClock()
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name, "state.db")
        self.stores = [MemoryStore(self.clock), SqliteStore(self.path, self.clock)]
        self.leases: list[Lease] = []

    def teardown(self) -> None:
        if hasattr(self, "stores"):
            self.stores[1].close()
            self.folder.cleanup()

    def both(self, call):
        answers = []
        for store in self.stores:
            try:
                answers.append(call(store))
            except OrchestrixError as error:
                answers.append((type(error), error.message))
        assert answers[0] == answers[1]
        return answers[0]

    @rule(run=runs)
    def acquire(self, run):
        answer = self.both(lambda store: store.acquire(run, FAR_AWAY))
        if isinstance(answer, Lease):
            self.leases.append(answer)

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), facts=st.lists(st.one_of(step_facts, run_facts), min_size=1, max_size=4))
    def append(self, data, facts):
        lease = data.draw(st.sampled_from(self.leases))
        self.both(lambda store: store.append(lease, [make(lease.run_id) for make in facts]))

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), idx=st.integers(0, 2), ending=st.sampled_from([merged, integration_failed]))
    def park_and_integrate(self, data, idx, ending):
        """A whole legal life, so that the machine also gets far."""
        lease = data.draw(st.sampled_from(self.leases))
        who = of(idx, run=lease.run_id)
        status = "completed" if ending is merged else "failed"
        facts = [created, started, attempt, waiting, ending, lambda **all_: closed(status, **all_)]
        self.both(lambda store: store.append(lease, [run_created()]))
        self.both(lambda store: store.append(lease, [make(**who) for make in facts]))

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def heartbeat(self, data):
        lease = data.draw(st.sampled_from(self.leases))
        self.both(lambda store: store.heartbeat(lease))

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def release(self, data):
        lease = data.draw(st.sampled_from(self.leases))
        self.both(lambda store: store.release(lease))

    @rule(milliseconds=st.sampled_from([-86_400_000, 1, limits.LEASE_TTL_MS // 2, limits.LEASE_TTL_MS]))
    def time_passes(self, milliseconds):
        self.clock.move(milliseconds)

    @rule()
    def reopen(self):
        """A coordinator that starts again knows only what is in the file."""
        self.stores[1].close()
        self.stores[1] = SqliteStore(self.path, self.clock)

    @invariant()
    def both_tell_the_same_whole_story(self):
        if not hasattr(self, "stores"):
            return
        for run in self.both(lambda store: store.run_ids()):
            log = self.both(lambda store, run=run: list(store.events(run)))
            assert verify(log) == []
            assert self.both(lambda store, run=run: store.state(run)) == fold(run, log)
            assert self.both(lambda store, run=run: store.audit(run)) == []
            self.both(lambda store, run=run: store.holder(run))


TwoStores.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None, derandomize=True)
test_memory_and_sqlite_agree_on_every_history = TwoStores.TestCase
