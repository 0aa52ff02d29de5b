"""The schema is the sum of its migrations, and only databases of this version are touched."""

from __future__ import annotations

import sqlite3
from itertools import product
from pathlib import Path

import pytest

from harness.errors import NotFound, StoreFailed
from harness.model.lifecycle import TRANSITIONS, State
from harness.store import migrate
from harness.store.sqlite import SqliteStore
from tests.store.samples import FAR_AWAY, RUN, HandClock, created, merged_step, of, run_created

SCHEMA = Path(__file__).with_name("schema.sql")
EVENT_AGAIN = """
    INSERT INTO events
    SELECT run_id, {seq}, id, type, ts, task_id, trace_id, summary, payload, prev_hash, hash, {epoch} FROM events LIMIT 1
"""
IMMUTABLE = "a contract is immutable: context_json and the identity of a sub-agent never change"


def schema_of(db: sqlite3.Connection) -> list[str]:
    rows = db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name")
    return [" ".join(sql.split()) for (sql,) in rows]


def test_the_schema_is_the_sum_of_its_migrations(sqlite_store, database):
    """A migrated database has the schema that is written down, object for object."""
    written = sqlite3.connect(":memory:")
    written.executescript(SCHEMA.read_text(encoding="utf-8"))
    migrated = sqlite3.connect(database)
    assert schema_of(migrated) == schema_of(written)
    assert migrate.version(migrated) == len(migrate.files()) == 1
    migrated.close()
    written.close()


def test_migrations_are_numbered_without_a_gap():
    """The n-th file leads to version n."""
    assert [int(file.name[:4]) for file in migrate.files()] == list(range(1, len(migrate.files()) + 1))


def test_the_stable_tables_have_their_columns(sqlite_store, database):
    """Other programs read these tables: columns may be added, never renamed."""
    db = sqlite3.connect(database)
    columns = {
        table: " ".join(row[1] for row in db.execute(f"PRAGMA table_info({table})"))
        for table in ("runs", "sub_agents", "events")
    }
    db.close()
    assert columns == {
        "runs": "run_id status goal plan_digest base head target integration_ref exit_code landed created_at"
        " finished_at last_seq last_hash",
        "sub_agents": "sub_agent_id run_id step_idx task_id step_id title state final_status close_reason message"
        " attempts start_point commit_id merge_commit kept_ref report_path changed_paths_json conflicts_json context_json",
        "events": "run_id seq id type ts task_id trace_id summary payload prev_hash hash epoch",
    }


def test_a_newer_database_is_refused(sqlite_store, database):
    """Neither opening for writing nor for reading touches what a newer version wrote."""
    sqlite_store.close()
    db = sqlite3.connect(database)
    db.execute("PRAGMA user_version = 99")
    db.close()
    for opening in (SqliteStore, SqliteStore.open_existing):
        with pytest.raises(StoreFailed, match=r"written by a newer orchestrix \(schema version 99, this one knows 1\)"):
            opening(database, HandClock())


def test_a_database_of_another_program_is_refused(database):
    """Tables that no migration made are somebody else's."""
    database.parent.mkdir()
    db = sqlite3.connect(database)
    db.execute("CREATE TABLE theirs (x)")
    db.close()
    with pytest.raises(StoreFailed, match="a database of another program"):
        SqliteStore(database, HandClock())


def test_an_older_database_is_not_migrated_by_reading(database):
    """Looking changes nothing: the file of an older version stays as it is."""
    database.parent.mkdir()
    sqlite3.connect(database).close()
    database.touch()
    with pytest.raises(StoreFailed, match="has schema version 0"):
        SqliteStore.open_existing(database, HandClock())
    assert database.read_bytes() == b""


def test_reading_creates_nothing(database):
    """Where no run ever was there is no database, and none appears."""
    with pytest.raises(NotFound, match="no store at"):
        SqliteStore.open_existing(database, HandClock())
    assert not database.parent.exists()


def test_a_new_database_is_private(sqlite_store, database):
    """The directory that the store makes is for its owner only."""
    assert database.parent.stat().st_mode & 0o777 == 0o700


def test_every_commit_is_durable(sqlite_store):
    """Write-ahead log, full synchronisation, foreign keys."""
    pragmas = {
        name: sqlite_store._db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
    }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 20_000}


@pytest.mark.parametrize(("old", "new"), list(product(State, State)))
def test_the_database_knows_the_same_transitions_as_the_model(old, new):
    """For each pair of states the trigger decides as model/lifecycle does; staying is no transition."""
    db = sqlite3.connect(":memory:")
    db.executescript(SCHEMA.read_text(encoding="utf-8"))
    db.executescript("DROP TRIGGER sub_agents_begin_created; PRAGMA foreign_keys = OFF;")
    db.execute(
        "INSERT INTO sub_agents VALUES ('a', 'r', 0, '0', '', '', ?, '', '', '', 0,'','','','','','','','')", (old,)
    )
    allowed = True
    try:
        db.execute("UPDATE sub_agents SET state = ?", (new,))
    except sqlite3.IntegrityError:
        allowed = False
    db.close()
    assert allowed == (old == new or (old, new) in TRANSITIONS)


@pytest.mark.parametrize(
    ("statement", "refusal"),
    [
        ("UPDATE events SET summary = 'x'", "events are append-only: no UPDATE"),
        ("DELETE FROM events", "events are append-only: no DELETE"),
        (EVENT_AGAIN.format(seq=9, epoch=1), "events are gap-free: seq must be the last one plus 1"),
        (EVENT_AGAIN.format(seq=3, epoch=0), "events are fenced: epoch must be the one of the lease"),
        ("REPLACE INTO events SELECT * FROM events LIMIT 1", "events are gap-free: seq must be the last one plus 1"),
        ("UPDATE sub_agents SET context_json = '{}'", IMMUTABLE),
        ("REPLACE INTO sub_agents SELECT * FROM sub_agents", "a sub-agent is created once, as created"),
        ("UPDATE sub_agents SET state = 'closed'", "illegal transition of a sub-agent"),
        ("UPDATE sub_agents SET state = 'nonsense'", "illegal transition of a sub-agent"),
        ("DELETE FROM sub_agents", "sub_agents are never deleted"),
        ("DELETE FROM runs", "runs are never deleted"),
        ("DELETE FROM leases", "leases are released, not deleted: the epoch must survive"),
        ("UPDATE leases SET epoch = 0", "the epoch of a lease only grows"),
    ],
)
def test_the_database_itself_refuses_to_forget(sqlite_store, database, statement, refusal):
    """Also another program that opens the file cannot rewrite history by a plain statement."""
    sqlite_store.append(sqlite_store.acquire(RUN, FAR_AWAY), [run_created(), created(**of(0))])
    db = sqlite3.connect(database)
    with pytest.raises(sqlite3.IntegrityError) as caught:
        db.execute(statement)
    db.close()
    assert str(caught.value) == refusal
    assert sqlite_store.audit(RUN) == []


def test_a_contract_is_kept_as_it_was_given(sqlite_store, database):
    """`context_json` is the canonical JSON of the contract, there before the sub-agent runs."""
    sqlite_store.append(sqlite_store.acquire(RUN, FAR_AWAY), [run_created(), *merged_step(**of(0))[:1]])
    db = sqlite3.connect(database)
    rows = db.execute("SELECT sub_agent_id, state, context_json FROM sub_agents").fetchall()
    db.close()
    context = '{"permissions":{"allowed_tools":["read_file"]},"step":{"title":"née"}}'
    assert rows == [("r1/0", "created", context)]
