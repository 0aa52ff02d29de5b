"""The embedded default: one SQLite file, durable at every commit, shared by all runs of a repository."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from harness.errors import IllegalTransition, StoreCorrupt, StoreFailed, UsageError
from harness.model import limits
from harness.model.events import GENESIS, Envelope, Fact, Line, canonical
from harness.model.ids import RunId
from harness.model.state import RunState, initial
from harness.ports import Clock, Lease
from harness.store import audit, connection, faults, leases, log, projection, queries
from harness.store.connection import Files, Transaction
from harness.store.leases import Held

_PAGE = 500
_open: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


def close_all() -> None:
    """Closes every store of this process, which puts the write-ahead log into the file; what cannot be put there stays in it."""
    for store in list(_open):
        with suppress(sqlite3.Error):
            store.close()


class SqliteStore:
    """Append-only log with projections; safe to share between threads, and the file between processes."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """Opens for writing: creates the file and its directory, migrates an older one; raises StoreFailed."""
        with faults.Translated(path):
            self._begin(path, clock, connection.open_for_writing(path))

    @classmethod
    def open_existing(cls, path: Path, clock: Clock) -> Self:
        """Opens for reading only: creates and migrates nothing; raises NotFound when there is no file."""
        store = cls.__new__(cls)
        with faults.Translated(path):
            store._begin(path, clock, connection.open_for_reading(path))  # noqa: SLF001 - the other constructor
        return store

    def _begin(self, path: Path, clock: Clock, db: sqlite3.Connection) -> None:
        self._path = path
        self._clock = clock
        self._db = db
        self._forgotten = weakref.finalize(self, _close_quietly, db)  # a store that is only dropped leaves no open file
        self._opened = Files.of(str(path))
        self._write_ahead = db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        self._files: Files | None = None
        self._synchronous = ""  # as this connection was last told
        self._lock = threading.RLock()
        self._translated = faults.Translated(path)
        self._sql = queries.placed()
        self._states: dict[str, RunState] = {}
        _open.add(self)

    def acquire(self, run_id: RunId, holder: Mapping[str, Any]) -> Lease:
        takeover = leases.Takeover(run_id)
        while True:
            with self._writing():
                old, now = self._held(run_id), self._clock.now()
                if takeover.allowed(old, now):
                    held = leases.successor(run_id, old, holder, now)
                    self._execute("take_lease", vars(held) | {"holder_json": canonical(held.holder)})
                    return Lease(run_id, held.epoch)
            self._clock.sleep(limits.LEASE_LOOK_MS / 1_000)

    def heartbeat(self, lease: Lease) -> None:
        with self._writing():
            held = leases.require_current(self._held(lease.run_id), lease)
            beat = leases.next_beat(held, self._clock.now())
            self._execute("touch_lease", {"run_id": lease.run_id, "epoch": lease.epoch, "heartbeat_at": beat})

    def release(self, lease: Lease) -> None:
        with self._writing():
            self._execute("release_lease", {"run_id": lease.run_id, "epoch": lease.epoch})

    def holder(self, run_id: RunId) -> Mapping[str, Any] | None:
        with self._reading():
            held = self._held(run_id)
        return leases.describe(held) if held and leases.looks_alive(held, self._clock.now()) else None

    def append(self, lease: Lease, facts: Sequence[Fact]) -> RunState:
        with self._lock, self._translated:
            self._prepare(lasting=any(fact.announces for fact in facts))
            with Transaction(self._db, "BEGIN IMMEDIATE", self._states):
                state, grown = self._extended(lease, facts)
                self._write_events(grown, lease.epoch)
                for growth in grown:
                    self._write_sub_agents(growth)
        self._states[lease.run_id] = state
        return state

    def state(self, run_id: RunId) -> RunState:
        with self._reading():
            state = self._load(run_id)
            self._states[run_id] = state
        if not state.last_seq:
            raise log.unknown_run(run_id)
        return state

    def events(self, run_id: RunId, after: int = 0) -> Iterator[Envelope]:
        return map(log.from_row, self._rows(run_id, after))

    def lines(self, run_id: RunId) -> Iterator[Line]:
        return map(log.line, self._rows(run_id, 0))

    def _rows(self, run_id: RunId, after: int) -> Iterator[Any]:
        """Read in pages, so that a slow reader never holds back a checkpoint of the write-ahead log."""
        while True:
            with self._reading():
                page = self._execute("events_after", {"run_id": run_id, "after": after, "limit": _PAGE}).fetchall()
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1]["seq"]

    def run_ids(self) -> list[RunId]:
        with self._reading():
            return [_run_id(row["run_id"]) for row in self._execute("run_ids", {})]

    def audit(self, run_id: RunId) -> list[str]:
        key = {"run_id": run_id}
        with self._reading():
            damage = [row[0] for row in self._db.execute("PRAGMA integrity_check") if row[0] != "ok"]
            self._db.text_factory = _lenient
            try:
                evidence = audit.Evidence(
                    run_id=run_id,
                    events=self._execute("all_events", key).fetchall(),
                    runs=self._execute("select_run", key).fetchall(),
                    sub_agents=self._execute("select_sub_agents", key).fetchall(),
                )
            finally:
                self._db.text_factory = str
        if evidence.empty:
            raise log.unknown_run(run_id)
        return [*(f"run {run_id}, file {self._path}: {text}" for text in damage), *audit.problems(evidence)]

    def close(self) -> None:
        with self._lock:
            self._forgotten.detach()
            self._db.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock, self._translated:
            self._prepare(lasting=True)
            with Transaction(self._db, "BEGIN IMMEDIATE", self._states):
                yield

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock, self._translated, Transaction(self._db, "BEGIN", self._states):
            yield

    def _prepare(self, *, lasting: bool) -> None:
        """What is not `lasting` outlives this process, and becomes durable with the next commit that is."""
        self._require_untouched(Files.of(str(self._path)))
        self._synchronise("FULL" if lasting or not self._write_ahead else "NORMAL")

    def _synchronise(self, mode: str) -> None:
        if mode != self._synchronous:
            self._db.execute(f"PRAGMA synchronous = {mode}")
            self._synchronous = mode

    def _require_untouched(self, now: Files) -> None:
        """Raises StoreFailed when somebody took the files away; the write-ahead log is known from the first write on."""
        before = self._files or self._opened._replace(log=now.log)
        harm = before.harm(now)
        if harm:
            raise StoreFailed(
                f"store {self._path} {harm}", hint="put the file back, then resume the run", path=str(self._path)
            )
        if now.log is not None:
            self._files = now

    def _execute(self, query: str, values: dict[str, Any]) -> sqlite3.Cursor:
        placed = self._sql[query]
        return self._db.execute(placed.text, placed.values(values))

    def _held(self, run_id: str) -> Held | None:
        row = self._execute("select_lease", {"run_id": run_id}).fetchone()
        if row is None:
            return None
        holder = faults.parse_json(row["holder_json"], f"run {run_id}, leases, column holder_json")
        if not isinstance(holder, dict) or not isinstance(row["epoch"], int):
            raise StoreCorrupt(
                f"run {run_id}, leases: the lease is unreadable", hint=f"run `orchestrix audit {run_id}`"
            )
        return Held(
            run_id=run_id,
            epoch=row["epoch"],
            holder=holder,
            acquired_at=row["acquired_at"],
            heartbeat_at=row["heartbeat_at"],
            released=bool(row["released"]),
        )

    def _extended(self, lease: Lease, facts: Sequence[Fact]) -> tuple[RunState, list[log.Growth]]:
        """The state with these facts, and they, sealed; the row of the run says so. Raises Fenced.

        What this process saw of the log is nearly always all of it, and the statement that moves its end finds out:
        the log is asked for its end only when that was wrong.
        """
        run_id, ts = lease.run_id, leases.timestamp(self._clock.now())
        known = self._states.get(run_id)
        if facts and known is not None and known.last_seq:
            with suppress(IllegalTransition):  # which another process may have made legal
                grown = log.extend(run_id, known, facts, ts)
                if self._moved(lease, known, grown[-1].after):
                    return grown[-1].after, grown
        before = self._current(lease)
        if not (facts or before.last_seq):
            raise log.unknown_run(run_id)
        grown = log.extend(run_id, before, facts, ts)
        after = grown[-1].after if grown else before
        if not before.last_seq:
            self._execute("insert_run", projection.run_row(after))
        elif not self._moved(lease, before, after):
            raise StoreCorrupt(
                f"run {run_id}: the end of the log cannot be moved", hint=f"run `orchestrix audit {run_id}`"
            )
        return after, grown

    def _moved(self, lease: Lease, before: RunState, after: RunState) -> bool:
        """Writes the row of the run if the log still ends where `before` does and the lease is still this one."""
        known = {"known_seq": before.last_seq, "known_hash": before.last_hash, "epoch": lease.epoch}
        if projection.only_grown(before, after):
            return self._execute("move_end_of_log", known | projection.end_of_log(after)).rowcount == 1
        return self._execute("update_run", known | projection.run_row(after)).rowcount == 1

    def _current(self, lease: Lease) -> RunState:
        """The state that this lease may append to; raises Fenced."""
        row = self._execute("lease_and_end_of_log", {"run_id": lease.run_id}).fetchone()
        if row is None or row["released"] or row["epoch"] != lease.epoch:
            leases.require_current(self._held(lease.run_id), lease)
        return self._folded(lease.run_id, row)

    def _load(self, run_id: RunId) -> RunState:
        return self._folded(run_id, self._execute("end_of_log", {"run_id": run_id}).fetchone())

    def _folded(self, run_id: RunId, row: sqlite3.Row | None) -> RunState:
        """The fold, continued from where this process last saw the log; another process may have appended."""
        state = self._states.get(run_id) or initial(run_id)
        end = (0, GENESIS) if row is None or row["last_seq"] is None else (row["last_seq"], row["last_hash"])
        if (state.last_seq, state.last_hash) != end:
            rows = self._execute("events_after", {"run_id": run_id, "after": state.last_seq, "limit": -1})
            state = log.replay(state, map(log.from_row, rows))
        if (state.last_seq, state.last_hash) != end:
            raise StoreCorrupt(
                f"run {run_id}: runs says that the log ends at seq {end[0]}, events ends at seq {state.last_seq}",
                hint=f"run `orchestrix audit {run_id}`",
            )
        return state

    def _write_events(self, grown: Sequence[log.Growth], epoch: int) -> None:
        placed = self._sql["insert_event"]
        rows = (projection.event_row(growth.envelope, epoch, growth.payload) for growth in grown)
        self._db.executemany(placed.text, map(placed.values, rows))

    def _write_sub_agents(self, growth: log.Growth) -> None:
        run_id = growth.after.run_id
        for old, step in projection.touched(growth.before, growth.envelope, growth.after):
            moving = projection.moving_columns(step)
            if old is None:
                self._execute("insert_sub_agent", projection.fixed_columns(run_id, step) | moving)
            elif self._execute("update_sub_agent", moving).rowcount != 1:
                raise StoreCorrupt(
                    f"run {run_id}, sub_agents: the row of {step.sub_agent_id} is missing",
                    hint=f"run `orchestrix audit {run_id}`",
                )


def _close_quietly(db: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # as in close_all
        db.close()


def _run_id(value: object) -> RunId:
    try:
        return RunId(str(value))
    except UsageError as error:
        raise StoreCorrupt(f"runs holds {value!r:.80}, which is no run id", hint="run `orchestrix audit`") from error


def _lenient(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")
