"""A record is read like a store and changed by nobody."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from harness.errors import NotFound, StoreCorrupt, StoreFailed
from harness.ports import Lease
from harness.store.memory import MemoryStore
from harness.store.recorded import RecordedStore
from tests.store.samples import FAR_AWAY, OTHER, RUN, conflicted_step, merged_step, of, run_created, run_finished


@pytest.fixture
def original(clock) -> MemoryStore:
    store = MemoryStore(clock)
    facts = [run_created(), *merged_step(**of(0)), *conflicted_step(**of(1)), run_finished("failed", 4)]
    store.append(store.acquire(RUN, FAR_AWAY), facts)
    return store


def test_a_record_answers_as_the_store_did(original):
    """State, events, runs and audit are those of the run that happened elsewhere."""
    text = "".join(json.dumps(line.as_dict()) + "\n" for line in original.events(RUN))
    record = RecordedStore.from_jsonl(text)
    assert record.run_ids() == [RUN]
    assert record.state(RUN) == original.state(RUN)
    assert list(record.events(RUN, after=3)) == list(original.events(RUN, after=3))
    assert record.audit(RUN) == []
    assert record.holder(RUN) is None


def test_a_record_cannot_be_changed(original):
    """Nobody becomes its coordinator and nothing is appended."""
    record = RecordedStore(list(original.events(RUN)))
    lease = Lease(RUN, 1)
    for change in (
        lambda: record.acquire(RUN, FAR_AWAY),
        lambda: record.heartbeat(lease),
        lambda: record.append(lease, [run_finished()]),
    ):
        with pytest.raises(StoreFailed, match="run r1 is a record: it cannot be changed"):
            change()
    record.release(lease)
    record.close()


def test_an_edited_record_is_found(original):
    """The audit says where; the state is not told from a log that does not verify."""
    lines = list(original.events(RUN))
    lines[2] = replace(lines[2], summary="edited")
    record = RecordedStore(lines)
    assert record.audit(RUN) == ["run r1, events, seq 3, column hash: the event was changed after it was written"]
    with pytest.raises(StoreCorrupt, match="run r1, events, seq 3"):
        record.state(RUN)


@pytest.mark.parametrize(
    ("line", "problem"),
    [("{", "line 2 of the record is not JSON"), ("{}", "line 2 of the record is not an envelope"), ("7", "line 2 of")],
)
def test_a_damaged_line_is_named_by_its_number(original, line, problem):
    """What is no envelope is refused when the record is read."""
    first = json.dumps(next(original.events(RUN)).as_dict())
    with pytest.raises(StoreCorrupt, match=problem):
        RecordedStore.from_jsonl(f"{first}\n{line}\n")


def test_a_run_that_is_not_in_the_record_is_not_found(original):
    """A record knows its own run only."""
    record = RecordedStore(list(original.events(RUN)))
    for ask in (record.state, record.audit):
        with pytest.raises(NotFound):
            ask(OTHER)
    assert list(record.events(OTHER)) == []
