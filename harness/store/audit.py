"""Everything about a run that does not verify, as sentences that name run, table, seq or sub-agent, and column.

Works on raw rows, whatever they hold: damage is reported, never raised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.errors import OrchestrixError, StoreCorrupt
from harness.model.events import GENESIS, canonical, digest
from harness.model.late import dataclass
from harness.model.state import RunState, evolve, initial
from harness.store import log, projection

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Evidence:
    """What the tables hold about one run."""

    run_id: str
    events: Sequence[Row]
    runs: Sequence[Row]
    sub_agents: Sequence[Row]

    @property
    def empty(self) -> bool:
        return not (self.events or self.runs or self.sub_agents)


def problems(evidence: Evidence) -> list[str]:
    """Empty when hash chain, columns, fold and rows all agree."""
    state, found = _log(evidence.run_id, evidence.events)
    return found if state is None else [*found, *_row_problems(evidence, state)]


def log_alone(run_id: str, events: Sequence[Row]) -> list[str]:
    """The same for a log that has no rows beside it."""
    return _log(run_id, events)[1]


def _log(run_id: str, events: Sequence[Row]) -> tuple[RunState | None, list[str]]:
    found = list(_chain_problems(run_id, events))
    state = initial(run_id)
    for row in events:
        try:
            state = evolve(state, log.from_row(row))
        except (OrchestrixError, TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            found.append(
                f"run {run_id}, events, seq {row['seq']!r}, column payload: does not fold ({error});"
                " runs and sub_agents were not compared"
            )
            return None, found
    return state, found


def _chain_problems(run_id: str, events: Sequence[Row]) -> Iterator[str]:
    """Gaps, broken links, columns that do not hash or do not agree."""
    previous, epoch = GENESIS, 0
    for expected, row in enumerate(events, 1):
        where = f"run {run_id}, events, seq {row['seq']!r}"
        if row["seq"] != expected:
            yield f"{where}: stands where seq {expected} should; an event is missing or doubled"
            return
        if row["prev_hash"] != previous:
            yield f"{where}, column prev_hash: does not name the event before it"
        yield from (f"{where}, {problem}" for problem in _event_problems(run_id, row))
        if not isinstance(row["epoch"], int) or row["epoch"] < max(epoch, 1):
            yield f"{where}, column epoch: {row['epoch']!r} is older than the epoch of the event before it"
        else:
            epoch = row["epoch"]
        previous = row["hash"]


def _event_problems(run_id: str, row: Row) -> Iterator[str]:
    expected = {
        "run_id": run_id,
        "id": f"{run_id}.{row['seq']}",
        "trace_id": hashlib.sha256(run_id.encode()).hexdigest()[:32],
    }
    yield from (
        f"column {column}: is {row[column]!r}, should be {value!r}"
        for column, value in expected.items()
        if row[column] != value
    )
    try:
        envelope = log.from_row(row).as_dict()
        payload = envelope["payload"]
        if canonical(payload) != row["payload"]:
            yield "column payload: is not the text that was written"
        if digest(envelope) != row["hash"]:
            yield "column hash: the event was changed after it was written"
        if row["task_id"] != (payload.get("task") if isinstance(payload, dict) else None):
            yield f"column task_id: is {row['task_id']!r}, the payload says otherwise"
    except StoreCorrupt:
        yield "column payload: is not JSON"
    except (TypeError, ValueError, RecursionError) as error:
        yield f"column hash: the event cannot be hashed ({error})"


def _row_problems(evidence: Evidence, state: RunState) -> Iterator[str]:
    expected = [projection.run_row(state)] if evidence.events else []
    yield from _table_problems(evidence.run_id, "runs", "run_id", expected, evidence.runs)
    yield from _table_problems(
        evidence.run_id, "sub_agents", "sub_agent_id", projection.sub_agent_rows(state), evidence.sub_agents
    )


def _table_problems(
    run_id: str, table: str, key: str, expected: list[dict[str, Any]], rows: Sequence[Row]
) -> Iterator[str]:
    actual = {row[key]: row for row in rows}
    for row in expected:
        where = f"run {run_id}, {table}, {row[key]}"
        found = actual.pop(row[key], None)
        if found is None:
            yield f"{where}: the row is missing"
            continue
        yield from (
            f"{where}, column {column}: is {_short(found[column])}, the log says {_short(value)}"
            for column, value in row.items()
            if found[column] != value
        )
    yield from (f"run {run_id}, {table}, {surplus}: the log knows no such row" for surplus in actual)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - what fits on a line
