"""The store in memory: the same rules and the same answers as the database, gone with the process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.model import limits
from harness.model.events import Envelope, Fact, Line, line_of
from harness.model.ids import RunId
from harness.model.state import RunState, initial
from harness.ports import Clock, Lease
from harness.store import audit, leases, log, projection
from harness.store.leases import Held


class MemoryStore:
    """Append-only log without a file; safe to share between threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._leases: dict[str, Held] = {}
        self._states: dict[RunId, RunState] = {}
        self._lines: dict[RunId, list[tuple[Envelope, int]]] = {}

    def acquire(self, run_id: RunId, holder: Mapping[str, Any]) -> Lease:
        takeover = leases.Takeover(run_id)
        while True:
            with self._lock:
                old, now = self._leases.get(run_id), self._clock.now()
                if takeover.allowed(old, now):
                    held = self._leases[run_id] = leases.successor(run_id, old, holder, now)
                    return Lease(run_id, held.epoch)
            self._clock.sleep(limits.LEASE_LOOK_MS / 1_000)

    def heartbeat(self, lease: Lease) -> None:
        with self._lock:
            held = leases.require_current(self._leases.get(lease.run_id), lease)
            self._leases[lease.run_id] = replace(held, heartbeat_at=leases.next_beat(held, self._clock.now()))

    def release(self, lease: Lease) -> None:
        with self._lock:
            held = self._leases.get(lease.run_id)
            if held is not None and held.epoch == lease.epoch:
                self._leases[lease.run_id] = replace(held, released=True)

    def holder(self, run_id: RunId) -> Mapping[str, Any] | None:
        with self._lock:
            held = self._leases.get(run_id)
        return leases.describe(held) if held and leases.looks_alive(held, self._clock.now()) else None

    def append(self, lease: Lease, facts: Sequence[Fact]) -> RunState:
        run_id = lease.run_id
        with self._lock:
            leases.require_current(self._leases.get(run_id), lease)
            before = self._states.get(run_id, initial(run_id))
            grown = log.extend(run_id, before, facts, leases.timestamp(self._clock.now()))
            if not grown:
                return self.state(run_id)
            self._lines.setdefault(run_id, []).extend((growth.envelope, lease.epoch) for growth in grown)
            self._states[run_id] = grown[-1].after
            return grown[-1].after

    def state(self, run_id: RunId) -> RunState:
        with self._lock:
            if run_id not in self._states:
                raise log.unknown_run(run_id)
            return self._states[run_id]

    def events(self, run_id: RunId, after: int = 0) -> Iterator[Envelope]:
        with self._lock:
            lines = self._lines.get(run_id, [])[after:]
        return (envelope for envelope, _epoch in lines)

    def lines(self, run_id: RunId) -> Iterator[Line]:
        return (line_of(envelope.as_dict()) for envelope in self.events(run_id))

    def run_ids(self) -> list[RunId]:
        with self._lock:
            return list(self._lines)

    def audit(self, run_id: RunId) -> list[str]:
        with self._lock:
            state = self.state(run_id)
            events = [projection.event_row(envelope, epoch) for envelope, epoch in self._lines[run_id]]
        rows = projection.sub_agent_rows(state)
        return audit.problems(audit.Evidence(run_id, events, [projection.run_row(state)], rows))

    def close(self) -> None:
        """Nothing is held open."""
