"""The disk fails, the file is damaged or gone: a clear error, nothing half-done, and on it goes once the cause is gone."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from support.parts import missing

from harness.errors import OrchestrixError, StoreCorrupt, StoreFailed
from harness.model import limits
from harness.store.sqlite import SqliteStore
from tests.store.samples import (
    FAR_AWAY,
    RUN,
    HandClock,
    created,
    merged_step,
    of,
    run_created,
    run_finished,
    run_started,
    tool_called,
)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that may be filled and made read-only."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:  # then the test itself is called in a namespace: see tests/conftest.py
        yield folder
        return
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        missing("mounting needs privileges")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_stops_the_append_and_nothing_is_half_done(small_disk, clock):
    """The error names disk and remedy; after space was made the same append works."""
    store = SqliteStore(small_disk / "state.db", clock)
    lease = store.acquire(RUN, FAR_AWAY)
    store.append(lease, [run_created(), created(**of(0))])
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space left"):
        filler.write_bytes(bytes(2**20))
    with pytest.raises(StoreFailed, match="the disk is full") as caught:
        store.append(lease, [tool_called("x" * 100_000, **of(0))])
    assert caught.value.hint == "free some space, then resume the run"
    filler.unlink()
    assert store.append(lease, [tool_called("x" * 100_000, **of(0))]).last_seq == 3
    assert store.audit(RUN) == []
    store.close()


def test_a_full_database_stops_the_append(sqlite_store):
    """The same where no disk can be mounted: the database may not grow."""
    lease = sqlite_store.acquire(RUN, FAR_AWAY)
    before = sqlite_store.append(lease, [run_created(), created(**of(0))])
    pages = sqlite_store._db.execute("PRAGMA page_count").fetchone()[0]
    sqlite_store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFailed, match="the disk is full"):
        sqlite_store.append(lease, [tool_called("x" * 100_000, **of(0))])
    assert sqlite_store.state(RUN) == before
    sqlite_store._db.execute("PRAGMA max_page_count = 100000")
    assert sqlite_store.append(lease, [tool_called("x" * 100_000, **of(0))]).last_seq == 3
    assert sqlite_store.audit(RUN) == []


@pytest.mark.parametrize("left_over", [("-wal", "-shm"), ("-wal",), ()], ids=["crashed", "copied", "clean"])
def test_a_read_only_medium_can_be_inspected(small_disk, clock, left_over):
    """With or without a write-ahead log beside it, everything that was committed is seen; nothing is created."""
    writer = SqliteStore(small_disk / "live.db", clock)
    writer.append(writer.acquire(RUN, FAR_AWAY), [run_created(), *merged_step(**of(0))])
    if not left_over:
        writer.close()
    for suffix in ("", *left_over):
        shutil.copyfile(small_disk / f"live.db{suffix}", small_disk / f"copy.db{suffix}")
    writer.close()
    names = sorted(small_disk.iterdir())
    subprocess.run(["mount", "-o", "remount,bind,ro", small_disk], check=True)
    clock.move(limits.LEASE_TTL_MS)
    reader = SqliteStore.open_existing(small_disk / "copy.db", clock)
    assert reader.state(RUN).last_seq == 8
    assert reader.audit(RUN) == []
    with pytest.raises(StoreFailed, match="it is read-only"):
        reader.acquire(RUN, FAR_AWAY)
    reader.close()
    with pytest.raises(StoreFailed, match=r"store .*copy\.db: "):
        SqliteStore(small_disk / "copy.db", clock).acquire(RUN, FAR_AWAY)
    assert sorted(small_disk.iterdir()) == names


def test_a_store_opened_for_reading_refuses_to_change(sqlite_store, database, clock):
    """Every writing call fails with the reason, and the run can be read all the same."""
    lease = sqlite_store.acquire(RUN, FAR_AWAY)
    sqlite_store.append(lease, [run_created()])
    reader = SqliteStore.open_existing(database, clock)
    for change in (lambda: reader.append(lease, [run_started()]), lambda: reader.heartbeat(lease)):
        with pytest.raises(StoreFailed, match="it is read-only"):
            change()
    assert reader.state(RUN) == sqlite_store.state(RUN)
    reader.close()


def test_a_locked_database_is_named(sqlite_store, database):
    """When the other process does not let go in time, the append fails as a whole."""
    lease = sqlite_store.acquire(RUN, FAR_AWAY)
    sqlite_store._db.execute("PRAGMA busy_timeout = 20")
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailed, match="another process keeps it locked"):
        sqlite_store.append(lease, [run_created()])
    other.execute("ROLLBACK")
    other.close()
    assert sqlite_store.append(lease, [run_created()]).last_seq == 1


@pytest.mark.parametrize("replaced", [False, True])
def test_a_database_removed_under_a_coordinator_is_noticed(sqlite_store, database, clock, replaced):
    """Nothing is appended to a file that nobody will find again."""
    lease = sqlite_store.acquire(RUN, FAR_AWAY)
    sqlite_store.append(lease, [run_created()])
    shutil.rmtree(database.parent)
    if replaced:
        SqliteStore(database, clock).close()
    with pytest.raises(StoreFailed, match="was removed or replaced while it was in use"):
        sqlite_store.append(lease, [run_started()])
    with pytest.raises(StoreFailed, match="was removed or replaced while it was in use"):
        sqlite_store.heartbeat(lease)


class ForgetfulConnection:
    """Commits, then says that it could not."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
        cursor = self._db.execute(sql, *values)
        if sql == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")
        return cursor

    def executemany(self, sql: str, rows: Iterable[object]) -> sqlite3.Cursor:
        return self._db.executemany(sql, rows)


def test_done_but_the_caller_saw_an_error(sqlite_store):
    """After a commit of unknown outcome the log is read again: no gap, no doubled seq."""
    lease = sqlite_store.acquire(RUN, FAR_AWAY)
    sqlite_store.append(lease, [run_created(), created(**of(0))])
    db, sqlite_store._db = sqlite_store._db, ForgetfulConnection(sqlite_store._db)
    with pytest.raises(StoreFailed, match="disk I/O error"):
        sqlite_store.append(lease, merged_step(**of(0))[1:2])
    sqlite_store._db = db
    state = sqlite_store.append(lease, merged_step(**of(0))[2:3])
    assert (state.last_seq, state.steps["0"].attempts) == (4, 1)
    assert sqlite_store.audit(RUN) == []


def test_a_path_that_cannot_be_a_database_is_a_clear_error(tmp_path, clock):
    """A file where a directory should be, a directory where a file should be, text where a database should be."""
    (tmp_path / "file").write_text("no database, only a text that is longer than the header of one" * 20)
    for path, kind, words in (
        (tmp_path / "file" / "state.db", StoreFailed, "Not a directory|File exists"),
        (tmp_path, StoreFailed, "it cannot be opened"),
        (tmp_path / "file", StoreCorrupt, "it is not a database"),
    ):
        with pytest.raises(kind, match=words):
            SqliteStore(path, clock)


def test_a_closed_store_says_so(database, clock):
    """A call after close is a StoreFailed, not a crash."""
    store = SqliteStore(database, clock)
    store.close()
    with pytest.raises(StoreFailed, match="closed database"):
        store.run_ids()


@pytest.mark.parametrize("edit", ["epoch = 'x'", "holder_json = '{'", "holder_json = '[]'", "heartbeat_at = 'noon'"])
def test_a_garbled_lease_is_no_crash(sqlite_store, database, edit):
    """Whoever cannot be read does not hold the run, or the store says that it is damaged."""
    sqlite_store.acquire(RUN, FAR_AWAY)
    db = sqlite3.connect(database)
    db.execute(f"UPDATE leases SET {edit}")
    db.commit()
    db.close()
    if "heartbeat" in edit:
        assert sqlite_store.holder(RUN) is None
    else:
        with pytest.raises(StoreCorrupt, match="run r1, leases"):
            sqlite_store.holder(RUN)


def damaged_copies(original: bytes) -> Iterator[bytes]:
    """Truncations and seeded bit flips all over the file."""
    chance = random.Random(20260102)
    for length in (1, 50, 100, 1_000, 4_096, 10_000, len(original) // 2, len(original) - 1):
        yield original[:length]
    for _ in range(120):
        damaged = bytearray(original)
        for _ in range(chance.choice((1, 1, 8, 64))):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        yield bytes(damaged)


def test_a_damaged_file_never_ends_in_a_traceback(sqlite_store, database):
    """Each call on a truncated or bit-flipped file either answers or raises an error of the tree."""
    steps = [*merged_step(**of(0)), *merged_step(**of(1))]
    sqlite_store.append(sqlite_store.acquire(RUN, FAR_AWAY), [run_created(), *steps, run_finished()])
    sqlite_store.close()
    refused = 0
    for number, content in enumerate(damaged_copies(database.read_bytes())):
        copy = database.with_name(f"damaged-{number}.db")
        copy.write_bytes(content)
        refused += bool(_exercise(copy))
    assert refused > 60


def _exercise(path: Path) -> int:
    """How many calls refused to go on."""
    clock = HandClock()
    clock.move(limits.LEASE_TTL_MS)
    noticed = 0
    for opening in (SqliteStore.open_existing, SqliteStore):
        try:
            store = opening(path, clock)
        except OrchestrixError:
            noticed += 1
            continue
        calls = [
            store.run_ids,
            partial(store.state, RUN),
            lambda asked=store: list(asked.events(RUN)),
            partial(store.holder, RUN),
            partial(store.audit, RUN),
        ]
        if opening is SqliteStore:
            calls.append(lambda asked=store: asked.append(asked.acquire(RUN, FAR_AWAY), [run_started(2)]) and [])
        for call in calls:
            with suppress(OrchestrixError):
                call()
                continue
            noticed += 1
        store.close()
    return noticed
