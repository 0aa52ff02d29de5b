"""The log is damaged, gone or locked: a run stops with one sentence, nothing acts, and it goes on when it can."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from faults.held import LiveRun, held, stopped
from support.checker import check, fingerprint
from support.workbench import Workbench, shell, write

from harness.model import limits

_DOCUMENTED = {0, 1, 2, 3, 4, 5, 6}


def _database(bench: Workbench) -> Path:
    return bench.files / ".orchestrix/local/state.db"


def _interrupted(bench: Workbench) -> Path:
    """A run whose coordinator was killed while a step waited; returns its database."""
    bench.plan(held("held.txt"), write("after.txt", "after\n", needs=[0]))
    run = LiveRun(bench)
    run.workspace()
    run.process.kill()
    run.process.communicate()
    return _database(bench)


def _copies(database: Path, folder: Path) -> Path:
    """The database and what SQLite keeps beside it."""
    shutil.copytree(database.parent, folder)
    return folder


def _damages(content: bytes) -> Iterator[bytes]:
    chance = random.Random(20260301)
    for length in (0, 1, 100, 4_096, len(content) // 2, len(content) - 1):
        yield content[:length]
    for _ in range(12):
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 8, 64))):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        yield bytes(damaged)


def test_damage_between_runs_is_told_and_nothing_is_done_on_it(bench: Workbench, tmp_path: Path) -> None:
    """Truncated or bit-flipped: every command ends with a documented status and no traceback; the whole copy resumes."""
    database = _interrupted(bench)
    with closing(sqlite3.connect(database)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = _copies(database, tmp_path / "whole")
    before = fingerprint(bench.files)
    for content in _damages(database.read_bytes()):
        shutil.rmtree(database.parent)
        shutil.copytree(whole, database.parent)
        database.write_bytes(content)
        for args in (("audit",), ("resume",), ("status", "latest"), ("doctor",)):
            done = bench.call(*args)
            assert done.code in _DOCUMENTED, (args, done)
            assert "Traceback" not in done.err
    assert fingerprint(bench.files) == before
    shutil.rmtree(database.parent)
    shutil.copytree(whole, database.parent)
    _resumes(bench)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda path: path.unlink(), "was removed or replaced while it was in use"),
        (lambda path: path.with_name("state.db-wal").unlink(), "was removed or replaced while it was in use"),
        (lambda path: os.truncate(path, 100), "was cut short while it was in use"),
    ],
    ids=["deleted", "write-ahead log deleted", "truncated"],
)
def test_damage_during_a_run_stops_it_before_the_next_effect(
    bench: Workbench, tmp_path: Path, fault: Callable[[Path], None], words: str
) -> None:
    """Refs stay where they were when the log broke; with the log back as it was, the run goes on."""
    bench.plan(held("held.txt"), write("after.txt", "after\n", needs=[0]))
    run = LiveRun(bench)
    run.workspace()
    whole = _copies(_database(bench), tmp_path / "whole")
    fault(_database(bench))
    refs = bench.git("for-each-ref")
    run.let_go()
    stopped(run.end(), 3, words)
    assert bench.git("for-each-ref") == refs
    shutil.rmtree(_database(bench).parent)
    shutil.copytree(whole, _database(bench).parent)
    _resumes(bench)


def _resumes(bench: Workbench) -> None:
    done = bench.call("resume", "--json")
    assert (done.code, done.reasons) == (0, ["merged", "merged"]), done.out
    assert bench.tree(done.data["head"]) == {"a.txt": "one", "b.txt": "two", "held.txt": "held", "after.txt": "after"}
    assert check(bench.files) == []
    assert bench.call("audit").code == 0


_LOCK = """
import pathlib, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
db.execute("BEGIN IMMEDIATE")
pathlib.Path(sys.argv[2]).touch()
time.sleep(1.5)
db.execute("COMMIT")
"""


@pytest.mark.parametrize(("patience_ms", "code"), [(20_000, 0), (50, 3)], ids=["patient", "impatient"])
def test_a_database_that_another_process_locks_is_waited_for_within_bounds(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, patience_ms: int, code: int
) -> None:
    """A step locks the log of its own run: shorter than the patience is only a pause, longer stops the run."""
    monkeypatch.setattr(limits, "STORE_BUSY_MS", patience_ms)
    locked = bench.root / "locked"
    locking = [sys.executable, "-c", _LOCK, str(_database(bench)), str(locked)]
    first = {"title": "locks", "command": locking, "allow_empty": True, "owns": ["none"]}
    second = shell(f"until [ -e '{locked}' ]; do sleep 0.02; done; echo 1 > c.txt", owns=["c.txt"])
    done = bench.run(first, second, flags=("--sandbox", "none", "-j", "2"))
    if code:
        stopped(done, code, "another process keeps it locked")
        monkeypatch.setattr(limits, "STORE_BUSY_MS", 20_000)
        done = bench.call("resume", "--json")
    assert (done.code, done.reasons) == (0, ["merged", "merged"]), done.out
    assert check(bench.files) == []
