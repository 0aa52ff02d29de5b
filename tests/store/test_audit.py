"""An edited copy of the database is found out, and the sentence says where."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from harness.errors import StoreCorrupt
from harness.store.sqlite import SqliteStore
from tests.store.samples import (
    FAR_AWAY,
    RUN,
    HandClock,
    conflicted_step,
    failed_step,
    merged_step,
    of,
    run_created,
    run_finished,
)

CONTEXT = '{"permissions":{"allowed_tools":["read_file"]},"step":{"title":"née"}}'
GHOST = """
    INSERT INTO sub_agents
    SELECT 'ghost', run_id, 7, '7', step_id, title, state, final_status, close_reason, message, attempts, start_point,
        commit_id, merge_commit, kept_ref, report_path, changed_paths_json, conflicts_json, context_json
    FROM sub_agents WHERE sub_agent_id = 'r1/0'
"""


@pytest.fixture
def finished_run(sqlite_store: SqliteStore, database: Path) -> Path:
    """A database with one finished run: one merged step, one retried, one conflicted."""
    steps = [*merged_step(**of(0)), *failed_step(**of(1)), *conflicted_step(**of(1, again=1))]
    sqlite_store.append(sqlite_store.acquire(RUN, FAR_AWAY), [run_created(), *steps, run_finished("failed", 4)])
    sqlite_store.close()
    return database


def audit_of_edited_copy(original: Path, *edits: str) -> list[str]:
    """Drops the triggers of a copy, edits it and returns what audit says of it."""
    copy = original.with_name("copy.db")
    shutil.copyfile(original, copy)
    db = sqlite3.connect(copy)
    for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        db.execute(f"DROP TRIGGER {trigger}")
    for edit in edits:
        db.execute(edit)
    db.commit()
    db.close()
    store = SqliteStore.open_existing(copy, HandClock())
    try:
        return store.audit(RUN)
    finally:
        store.close()


def test_an_unedited_copy_is_intact(finished_run):
    """Nothing is said of a copy that nobody touched."""
    assert audit_of_edited_copy(finished_run) == []


def test_an_edited_payload_is_found(finished_run):
    """The hash covers the payload, and the rows no longer are the fold."""
    problems = audit_of_edited_copy(
        finished_run, "UPDATE events SET payload = replace(payload, 'a goal', 'a gaol') WHERE seq = 1"
    )
    assert problems == [
        "run r1, events, seq 1, column hash: the event was changed after it was written",
        "run r1, runs, r1, column goal: is 'a goal', the log says 'a gaol'",
    ]


def test_reformatted_json_is_found(finished_run):
    """The same value in another spelling is not what was written."""
    problems = audit_of_edited_copy(finished_run, "UPDATE events SET payload = payload || ' ' WHERE seq = 3")
    assert problems == ["run r1, events, seq 3, column payload: is not the text that was written"]


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ("type", "column hash: the event was changed after it was written"),
        ("ts", "column hash: the event was changed after it was written"),
        ("summary", "column hash: the event was changed after it was written"),
        ("task_id", "column task_id: is 'edited', the payload says otherwise"),
        ("id", "column id: is 'edited', should be 'r1.1'"),
        ("trace_id", "column trace_id: is 'edited', should be '82f3e9c695dc6b8d1b11818d5701919e'"),
        ("prev_hash", "column prev_hash: does not name the event before it"),
        ("hash", "column hash: the event was changed after it was written"),
        ("epoch", "column epoch: 'edited' is older than the epoch of the event before it"),
    ],
)
def test_every_column_of_an_event_is_covered(finished_run, column, problem):
    """Whichever column of the envelope is edited, the audit names the event."""
    problems = audit_of_edited_copy(finished_run, f"UPDATE events SET {column} = 'edited' WHERE seq = 1")
    assert f"run r1, events, seq 1, {problem}" in problems


def test_a_deleted_last_event_is_found(finished_run):
    """A shorter log still chains; the run's own row remembers where it ended."""
    problems = audit_of_edited_copy(finished_run, "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)")
    assert "run r1, runs, r1, column last_seq: is 21, the log says 20" in problems
    assert any(line.startswith("run r1, runs, r1, column last_hash: is ") for line in problems)


def test_a_deleted_middle_event_is_found(finished_run):
    """A gap is named where the next event stands."""
    problems = audit_of_edited_copy(finished_run, "DELETE FROM events WHERE seq = 5")
    assert problems[0] == "run r1, events, seq 6: stands where seq 5 should; an event is missing or doubled"


def test_two_swapped_events_are_found(finished_run):
    """Each of them no longer hashes, and the links around them are broken."""
    problems = audit_of_edited_copy(
        finished_run,
        "UPDATE events SET seq = -seq WHERE seq IN (4, 5)",
        "UPDATE events SET seq = 5 WHERE seq = -4",
        "UPDATE events SET seq = 4 WHERE seq = -5",
    )
    assert [line for line in problems if "hash" in line] == [
        "run r1, events, seq 4, column prev_hash: does not name the event before it",
        "run r1, events, seq 4, column hash: the event was changed after it was written",
        "run r1, events, seq 5, column prev_hash: does not name the event before it",
        "run r1, events, seq 5, column hash: the event was changed after it was written",
        "run r1, events, seq 6, column prev_hash: does not name the event before it",
    ]


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        ("UPDATE runs SET head = 'x'", f"runs, r1, column head: is 'x', the log says '{'c' * 40}'"),
        ("UPDATE runs SET status = 'succeeded'", "runs, r1, column status: is 'succeeded', the log says 'failed'"),
        (
            "UPDATE sub_agents SET state = 'completed' WHERE sub_agent_id = 'r1/0'",
            "sub_agents, r1/0, column state: is 'completed', the log says 'closed'",
        ),
        (
            "UPDATE sub_agents SET final_status = 'completed' WHERE sub_agent_id = 'r1/1'",
            "sub_agents, r1/1, column final_status: is 'completed', the log says 'failed'",
        ),
        (
            "UPDATE sub_agents SET context_json = '{}' WHERE sub_agent_id = 'r1/0'",
            f"sub_agents, r1/0, column context_json: is '{{}}', the log says {CONTEXT!r}",
        ),
        ("DELETE FROM sub_agents WHERE sub_agent_id = 'r1/1'", "sub_agents, r1/1: the row is missing"),
        (
            GHOST,
            "sub_agents, ghost: the log knows no such row",
        ),
        ("DELETE FROM runs", "runs, r1: the row is missing"),
    ],
    ids=["head", "status", "state", "superseded", "contract", "missing", "surplus", "no-run"],
)
def test_a_row_that_is_not_the_fold_is_found(finished_run, edit, problem):
    """Each field of each row is compared, superseded sub-agents and surplus rows included."""
    assert audit_of_edited_copy(finished_run, edit) == [f"run r1, {problem}"]


@pytest.mark.parametrize(
    "garbage",
    ["x'ff00'", "'{'", "'[]'", "'null'", "17", "cast(x'fffe' AS TEXT)", "'{\"status\": 1}'", "'{\"a\": NaN}'"],
)
@pytest.mark.parametrize("seq", [1, 2, 21])
def test_garbage_in_a_payload_is_reported_not_raised(finished_run, garbage, seq):
    """Whatever a damaged row holds, the audit ends with sentences."""
    problems = audit_of_edited_copy(finished_run, f"UPDATE events SET payload = {garbage} WHERE seq = {seq}")
    assert problems
    assert all(line.startswith("run r1, ") for line in problems)


def test_garbage_in_every_column_is_reported_not_raised(finished_run):
    """Blobs and invalid text in all columns of all tables do not stop the audit."""
    db = sqlite3.connect(finished_run)
    edits = [
        f"UPDATE {table} SET {name} = x'ff'"
        for table in ("events", "runs", "sub_agents")
        for _, name, *_ in db.execute(f"PRAGMA table_info({table})").fetchall()
        if name not in {"run_id", "seq", "sub_agent_id"}
    ]
    db.close()
    assert len(audit_of_edited_copy(finished_run, *edits)) > 21


def test_a_tampered_log_is_not_acted_upon(finished_run):
    """A coordinator that reads an edited log stops with StoreCorrupt and the way to the audit."""
    audit_of_edited_copy(finished_run, "UPDATE events SET summary = 'x' WHERE seq = 3")
    store = SqliteStore(finished_run.with_name("copy.db"), HandClock())
    with pytest.raises(StoreCorrupt, match="run r1, events, seq 3: the log cannot be folded") as caught:
        store.state(RUN)
    assert caught.value.hint == "run `orchestrix audit r1`"
    store.close()


def test_a_row_edited_behind_the_log_stops_the_next_append(sqlite_store, database):
    """Rows that no longer fit the log make the append fail as a whole."""
    lease = sqlite_store.acquire(RUN, FAR_AWAY)
    sqlite_store.append(lease, [run_created(), *merged_step(**of(0))[:4]])
    db = sqlite3.connect(database)
    db.execute("UPDATE sub_agents SET state = 'failed'")
    db.commit()
    db.close()
    with pytest.raises(StoreCorrupt, match="illegal transition"):
        sqlite_store.append(lease, merged_step(**of(0))[4:5])
    assert len(list(sqlite_store.events(RUN))) == 5
