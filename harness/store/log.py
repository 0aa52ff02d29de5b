"""How a log grows and how it is read back: facts are sealed onto a state, envelopes are replayed onto one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from harness.errors import NotFound, OrchestrixError, StoreCorrupt
from harness.model.events import Envelope, Fact, Line, digest, line_of, sealed, written_line
from harness.model.ids import RunId
from harness.model.state import RunState, evolve
from harness.store.faults import parse_json

ENVELOPE_COLUMNS = tuple(item.name for item in fields(Envelope))


class Growth(NamedTuple):
    """One sealed fact with the text of its payload, and the state on either side of it."""

    before: RunState
    envelope: Envelope
    payload: str
    after: RunState


def extend(run_id: RunId, state: RunState, facts: Sequence[Fact], ts: str) -> list[Growth]:
    """Seals the facts one after the other; raises IllegalTransition where the lifecycle forbids one."""
    grown = []
    for fact in facts:
        envelope, payload = sealed(fact, run_id=run_id, seq=state.last_seq + 1, prev_hash=state.last_hash, ts=ts)
        after = evolve(state, envelope)
        grown.append(Growth(state, envelope, payload, after))
        state = after
    return grown


def replay(state: RunState, envelopes: Iterable[Envelope]) -> RunState:
    """The state after these envelopes; raises StoreCorrupt where one does not follow, does not hash or does not fold."""
    for item in envelopes:
        try:
            if (item.seq, item.prev_hash, item.hash) != (state.last_seq + 1, state.last_hash, digest(item.as_dict())):
                raise ValueError("it does not verify")  # noqa: TRY301 - one place turns every kind of damage into words
            state = evolve(state, item)
        except (OrchestrixError, TypeError, ValueError, KeyError, AttributeError) as error:
            raise StoreCorrupt(
                f"run {state.run_id}, events, seq {item.seq}: the log cannot be folded: {error}",
                hint=f"run `orchestrix audit {state.run_id}`",
            ) from error
    return state


def from_row(row: Mapping[str, Any]) -> Envelope:
    """The envelope that a row of `events` holds; raises StoreCorrupt."""
    values = {name: row[name] for name in ENVELOPE_COLUMNS}
    values["payload"] = parse_json(row["payload"], f"run {row['run_id']}, events, seq {row['seq']}, column payload")
    return Envelope(**values)


def line(row: Mapping[str, Any]) -> Line:
    """The same as text; raises StoreCorrupt."""
    return written_line(row) or line_of(from_row(row).as_dict())


def unknown_run(run_id: RunId) -> NotFound:
    return NotFound(f"no run {run_id}", hint="`orchestrix list` shows every run", run_id=run_id)
