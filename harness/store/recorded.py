"""A run that happened elsewhere: a read-only store over the envelopes of its record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, Self

from harness.errors import StoreCorrupt, StoreFailed
from harness.model.events import Envelope, Fact, Line, line_of
from harness.model.ids import RunId
from harness.model.state import RunState, initial
from harness.ports import Lease
from harness.store import audit, log, projection
from harness.store.faults import parse_json


class RecordedStore:
    """Answers every question; refuses every change with StoreFailed."""

    def __init__(self, envelopes: Sequence[Envelope]) -> None:
        self._lines: dict[str, list[Envelope]] = {}
        for envelope in envelopes:
            self._lines.setdefault(envelope.run_id, []).append(envelope)

    @classmethod
    def from_jsonl(cls, text: str) -> Self:
        """One envelope on each line; raises StoreCorrupt, naming the line."""
        return cls([_envelope(line, number) for number, line in enumerate(text.splitlines(), 1) if line.strip()])

    def acquire(self, run_id: RunId, holder: Mapping[str, Any]) -> Lease:  # noqa: ARG002 - the port's signature
        _refuse(run_id)

    def heartbeat(self, lease: Lease) -> None:
        _refuse(lease.run_id)

    def release(self, lease: Lease) -> None:
        """No lease was ever given."""

    def holder(self, run_id: RunId) -> None:
        """Nobody holds a record."""

    def append(self, lease: Lease, facts: Sequence[Fact]) -> RunState:  # noqa: ARG002 - the port's signature
        _refuse(lease.run_id)

    def state(self, run_id: RunId) -> RunState:
        return log.replay(initial(run_id), self._of(run_id))

    def events(self, run_id: RunId, after: int = 0) -> Iterator[Envelope]:
        return (envelope for envelope in self._lines.get(run_id, []) if envelope.seq > after)

    def lines(self, run_id: RunId) -> Iterator[Line]:
        return (line_of(envelope.as_dict()) for envelope in self.events(run_id))

    def run_ids(self) -> list[RunId]:
        return [RunId(run_id) for run_id in self._lines]

    def audit(self, run_id: RunId) -> list[str]:
        """A record has no rows beside its log: chain, columns and lifecycle are what can be verified."""
        rows = [projection.event_row(envelope) for envelope in self._of(run_id)]
        return audit.log_alone(run_id, rows)

    def close(self) -> None:
        """Nothing is held open."""

    def _of(self, run_id: RunId) -> list[Envelope]:
        if run_id not in self._lines:
            raise log.unknown_run(run_id)
        return self._lines[run_id]


def _envelope(line: str, number: int) -> Envelope:
    value = parse_json(line, f"line {number} of the record")
    try:
        return Envelope(**value)
    except TypeError as error:
        raise StoreCorrupt(f"line {number} of the record is not an envelope", hint="fetch the record again") from error


def _refuse(run_id: str) -> NoReturn:
    raise StoreFailed(
        f"run {run_id} is a record: it cannot be changed", hint="run the plan again to change something", run_id=run_id
    )
