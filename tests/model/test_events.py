"""A sealed fact can be read back, rehashed, and no line of a log can be changed, dropped or moved unseen."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model import events as ev
from harness.model.ids import TaskId
from harness.model.lifecycle import State
from tests.store.samples import (
    RUN,
    closed,
    conflicted_step,
    created,
    failed_step,
    merged_step,
    of,
    run_created,
    tool_called,
)

TS = "2026-01-02T03:04:05.678901Z"
SAMPLES = {str: "text", int: 7, float: 0.5, bool: True, dict: {"k": "v"}, list: []}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def sealed(facts: list[ev.Fact]) -> list[ev.Envelope]:
    """The facts as a log."""
    log: list[ev.Envelope] = []
    for fact in facts:
        previous = log[-1].hash if log else ev.GENESIS
        log.append(ev.seal(fact, run_id=RUN, seq=len(log) + 1, prev_hash=previous, ts=TS))
    return log


def sample_of(cls: type[ev.Fact]) -> ev.Fact:
    """A fact with every field filled."""
    hints = get_type_hints(cls)
    values = {}
    for name in cls.fields:
        hint = hints[name]
        options = getattr(hint, "__args__", (hint,)) if hint.__class__.__name__ == "UnionType" else (hint,)
        origin = getattr(options[0], "__origin__", options[0])
        values[name] = SAMPLES[origin]
    return cls(**values | ({"plan": {"steps": []}} if "plan" in cls.fields else {}))


@pytest.mark.parametrize("name", sorted(ev.TYPES))
def test_every_fact_comes_back_from_its_envelope(name):
    """What was sealed, written as JSON and read again is the same fact, told on one line."""
    fact = sample_of(ev.TYPES[name])
    envelope = ev.seal(fact, run_id=RUN, seq=1, prev_hash=ev.GENESIS, ts=TS)
    read = ev.Envelope(**json.loads(json.dumps(envelope.as_dict())))
    assert read == envelope
    assert read.fact() == fact
    assert read.type == name
    assert ev.verify([read]) == []
    assert len(read.summary.splitlines()) == 1


def test_the_union_is_closed():
    """Every fact class that has a type is in the table, under its own type."""

    def concrete(cls: type[ev.Fact]) -> set[type[ev.Fact]]:
        below = {found for child in cls.__subclasses__() for found in concrete(child)}
        return below | ({cls} if "type" in cls.__dict__ else set())

    assert set(ev.TYPES.values()) == concrete(ev.Fact)
    assert all(cls.type == name for name, cls in ev.TYPES.items())


def test_the_envelope_is_as_designed():
    """Field names and their order on the wire, whole."""
    envelope = ev.seal(closed("completed", **of(0)), run_id=RUN, seq=3, prev_hash="p" * 64, ts=TS)
    assert envelope.as_dict() == {
        "id": "r1.3",
        "run_id": "r1",
        "seq": 3,
        "type": "agent.subagent_closed",
        "ts": TS,
        "task_id": "0",
        "trace_id": "82f3e9c695dc6b8d1b11818d5701919e",
        "summary": "step 0 closed as completed: merged",
        "payload": {
            "sub_agent_id": "r1/0",
            "step_idx": 0,
            "task": "0",
            "final_status": "completed",
            "close_reason": "merged",
        },
        "prev_hash": "p" * 64,
        "hash": envelope.hash,
    }
    assert envelope.hash == ev.digest(envelope.as_dict())
    assert list(envelope.as_dict()) == [
        "id",
        "run_id",
        "seq",
        "type",
        "ts",
        "task_id",
        "trace_id",
        "summary",
        "payload",
        "prev_hash",
        "hash",
    ]


@settings(derandomize=True, deadline=None)
@given(st.dictionaries(st.text(max_size=8), json_values, max_size=4), st.text(st.characters(codec=None)))
def test_any_payload_hashes_the_same_after_a_round_trip(arguments, message):
    """Also text that UTF-8 cannot hold: it is spelled out once and stays as it is."""
    fact = ev.ToolCalled(**of(0), tool="run", arguments=arguments, ok=False, message=message)
    envelope = ev.seal(fact, run_id=RUN, seq=1, prev_hash=ev.GENESIS, ts=TS)
    text = ev.canonical(envelope.as_dict())
    read = ev.Envelope(**json.loads(text.encode("utf-8")))
    assert read == envelope
    assert ev.canonical(read.as_dict()) == text
    assert ev.verify([read]) == []


def test_hashes_are_those_of_every_version():
    """Logs that were written long ago verify: these hashes were made when an envelope was still encoded as a whole."""
    facts = [
        ev.RunLanded(target="refs/heads/main", old="a" * 40, new="b" * 40),
        ev.ToolCalled(
            **of(0),
            tool="run",
            arguments={"b": [1, 2.5, None, True], "a": {"z": "ä\u2028", "y": '"\\\n'}},
            ok=False,
            message="caf\udce9 \x00 \U0001f600\n two",
        ),
        ev.TaskStarted(task=None, node="n", persona="é"),
    ]
    assert [line.hash for line in sealed(facts)] == [
        "b9f25473a79c2dd84808b02b383e0fdd86ca5722af631d648aa17724e72ca392",
        "cc6853bc23a166de49bee6e63a87a34bd996acc30ed9e12952a3f2439a31a3eb",
        "3cda0880cf0a573bee1db42bc13c357c9797571abb0f17e68acfe9836459bd83",
    ]


def test_a_line_is_what_was_hashed_or_nothing():
    """The text of a row as it was written is the canonical one of its envelope; of an edited row there is none."""
    for line in LOG:
        row = {**line.as_dict(), "payload": ev.canonical(line.payload)}
        assert ev.written_line(row) == ev.line_of(line.as_dict())
        for name in ("id", "run_id", "seq", "type", "ts", "task_id", "trace_id", "summary", "payload", "prev_hash"):
            assert ev.written_line({**row, name: 'x"'}) is None
        assert ev.written_line({**row, "hash": "0" * 64}) is None


def test_a_fact_of_a_newer_version_is_kept_as_it_is():
    """An unknown type has no class, unknown fields of a known type are left out; both still verify."""
    envelope = sealed([created(**of(0))])[0]
    assert replace(envelope, type="agent.invented_later").fact() is None
    assert replace(envelope, payload={**envelope.payload, "later": 1}).fact() == created(**of(0))


@settings(derandomize=True, deadline=None)
@given(
    st.one_of(st.text(st.characters(codec=None)), st.sampled_from(State), st.just(TaskId("1.2"))),
    st.one_of(json_values, st.floats(), st.just(State.CLOSED), st.tuples(st.integers())),
)
def test_a_sealed_payload_is_what_json_gives_back(tool, arguments):
    """In its types as well: a name becomes a plain string, a tuple a list."""
    fact = ev.ToolCalled(**of(0), tool=tool, arguments=arguments, ok=True, message="")
    envelope, text = ev.sealed(fact, run_id=RUN, seq=1, prev_hash=ev.GENESIS, ts=TS)
    assert repr(sorted(envelope.payload.items())) == repr(sorted(json.loads(text).items()))
    assert {type(value) for value in envelope.payload.values()} == {type(value) for value in json.loads(text).values()}


def test_a_sealed_payload_does_not_share_with_the_fact():
    """What the caller does to its own lists later does not change the log."""
    arguments = {"argv": ["a"]}
    fact = ev.ToolCalled(**of(0), tool="run", arguments=arguments, ok=True, message="")
    envelope = sealed([fact])[0]
    arguments["argv"].append("b")
    assert envelope.payload["arguments"] == {"argv": ["a"]}


LOG = sealed([run_created(), *merged_step(**of(0)), *conflicted_step(**of(1)), *failed_step(**of(2))])


@settings(derandomize=True, deadline=None)
@given(st.integers(0, len(LOG) - 1), st.sampled_from(["type", "ts", "task_id", "trace_id", "summary", "run_id", "id"]))
def test_a_changed_line_is_found(index, name):
    """Whichever field of whichever line."""
    log = list(LOG)
    log[index] = replace(log[index], **{name: "changed"})
    assert ev.verify(log) == [f"seq {index + 1}: the line was changed after it was written"]


@settings(derandomize=True, deadline=None)
@given(st.integers(0, len(LOG) - 2), st.data())
def test_a_dropped_or_moved_line_is_found(index, data):
    """Any line but the last: what is cut off at the end, only the rows remember."""
    assert ev.verify([*LOG[:index], *LOG[index + 1 :]])
    other = data.draw(st.integers(0, len(LOG) - 1).filter(lambda place: place != index))
    moved = list(LOG)
    moved[index], moved[other] = moved[other], moved[index]
    assert ev.verify(moved)


def test_a_rewritten_line_breaks_the_link_after_it():
    """A line that was changed and hashed again no longer is the one that the next line names."""
    forged = ev.seal(tool_called("forged", **of(0)), run_id=RUN, seq=4, prev_hash=LOG[2].hash, ts=TS)
    assert ev.verify([*LOG[:3], forged, *LOG[4:]]) == ["seq 5: does not follow the line before it"]


def test_summaries_draw_a_condensed_timeline():
    """One line for each fact, readable without the payload."""
    assert [line.summary for line in sealed(conflicted_step(**of(1)))] == [
        "step 1 created: a step",
        "step 1 started on aaaaaaaaaaaa",
        "step 1 attempt 1 by command",
        "step 1 attempt 1: done",
        "step 1 waits for merge (2 paths)",
        "step 1 not integrated: merge_conflict: conflict",
        "step 1 closed as failed: merge_conflict",
    ]
