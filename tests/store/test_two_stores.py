"""What a process remembers of a log is never trusted further than the database confirms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import Fenced, IllegalTransition
from harness.store.sqlite import SqliteStore
from tests.store.samples import FAR_AWAY, RUN, HandClock, created, merged_step, of, run_created, run_finished


@pytest.fixture
def other(sqlite_store: SqliteStore, database: Path, clock: HandClock) -> Iterator[SqliteStore]:
    """A second connection to the same file, as another process has one."""
    store = SqliteStore(database, clock)
    yield store
    store.close()


def test_what_another_store_appended_is_taken_in_first(sqlite_store: SqliteStore, other: SqliteStore) -> None:
    """Also where the fact would be illegal after what this store remembers, and where the run's row changes."""
    steps = merged_step(**of(0))
    lease = sqlite_store.acquire(RUN, FAR_AWAY)
    sqlite_store.append(lease, [run_created(), created(**of(0))])
    other.append(lease, steps[1:2])
    assert sqlite_store.append(lease, steps[2:3]).last_seq == 4
    assert other.append(lease, steps[3:4]).last_seq == 5
    assert sqlite_store.append(lease, [run_finished()]).last_seq == 6
    assert other.append(lease, []).last_seq == 6
    assert other.audit(RUN) == []


def test_a_lost_lease_is_told_before_anything_else(sqlite_store: SqliteStore, other: SqliteStore) -> None:
    """A coordinator that was replaced hears that, legal or not; nothing of what it says is written."""
    steps = merged_step(**of(0))
    lease = sqlite_store.acquire(RUN, FAR_AWAY)
    sqlite_store.append(lease, [run_created(), created(**of(0))])
    with pytest.raises(IllegalTransition):
        sqlite_store.append(lease, steps[2:3])
    sqlite_store.append(lease, steps[1:2])
    other.release(lease)
    newer = other.acquire(RUN, FAR_AWAY)
    for facts in (steps[2:3], steps[1:2], [run_finished()]):
        with pytest.raises(Fenced):
            sqlite_store.append(lease, facts)
    assert other.append(newer, steps[2:3]).last_seq == 4
    assert other.audit(RUN) == []
