"""Nothing acts once an append has failed."""

from __future__ import annotations

import pytest
from store.samples import RUN, HandClock, created, of, run_created, run_started

from harness.engine.journal import Journal
from harness.errors import StoreFailed
from harness.model.events import Fact
from harness.model.state import RunState
from harness.ports import Lease
from harness.store.memory import MemoryStore


class Faulty(MemoryStore):
    """Fails one append as a disk does: `done` says whether the facts are there all the same."""

    def __init__(self, *, done: bool) -> None:
        super().__init__(HandClock())
        self.fails = False
        self._done = done

    def append(self, lease: Lease, facts: list[Fact]) -> RunState:
        if not self.fails:
            return super().append(lease, facts)
        self.fails = False
        if self._done:
            super().append(lease, facts)
        raise StoreFailed("the disk is full")


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done but the caller saw an error"])
def test_a_pen_that_failed_once_never_writes_again(*, done: bool) -> None:
    """The disk works again, but what this coordinator believes and what the log says may differ: it must stop."""
    store = Faulty(done=done)
    lease = store.acquire(RUN, {"pid": 1})
    store.append(lease, [run_created(), created(**of(0))])
    seen: list[Fact] = []
    journal = Journal(store, lease, store.state(RUN), lambda fact, _state: seen.append(fact))
    store.fails = True
    for _ in range(2):
        with pytest.raises(StoreFailed, match="the disk is full"):
            journal.append(run_started())
    assert seen == []
    assert store.state(RUN).last_seq == (3 if done else 2)
