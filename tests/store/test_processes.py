"""Several processes on one file: kill -9, takeover, concurrent appends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from harness.errors import Busy
from harness.model import limits
from harness.model.events import verify
from harness.model.ids import RunId
from harness.store import identity
from harness.store.sqlite import SqliteStore
from tests.store.appender import WallClock
from tests.store.samples import FAR_AWAY, OTHER, RUN, run_started

ROOT = Path(__file__).parents[2]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(database: Path) -> Iterator[Start]:
    """Starts a coordinator process; whatever still runs at the end is ended."""
    running: list[subprocess.Popen[str]] = []

    def begin(run: RunId, count: int, *wait: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "tests.store.appender", str(database), run, str(count), *wait]
        pipe = subprocess.PIPE
        process = subprocess.Popen(argv, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def test_kill_9_in_the_middle_of_appends_loses_nothing_that_was_told(start, database, clock):
    """After each kill the log is gap-free and chained, holds every told event, and the next coordinator takes over."""
    for killed_after in (1, 17, 40):
        process = start(RUN, 1_000_000)
        for _ in range(killed_after):
            told = int(process.stdout.readline())
        process.kill()
        process.communicate()
        store = SqliteStore(database, clock)
        log = list(store.events(RUN))
        assert store.audit(RUN) == verify(log) == []
        assert len(log) >= told
        assert store.holder(RUN) is None
        store.close()


def test_two_processes_append_to_two_runs_of_one_file(start, sqlite_store):
    """They take turns without a single lock error."""
    processes = [start(run, 200) for run in (RUN, OTHER)]
    endings = [(process.communicate(), process.returncode) for process in processes]
    told = "".join(f"{seq}\n" for seq in range(3, 203))
    assert endings == [((told, ""), 0), ((told, ""), 0)]
    assert sqlite_store.audit(RUN) == sqlite_store.audit(OTHER) == []


def test_several_processes_may_create_the_database_at_once(start, sqlite_store):
    """Whoever comes first migrates; the others find it done."""
    runs = [RunId(f"run-{number}") for number in range(4)]
    processes = [start(run, 1) for run in runs]
    assert [(process.communicate(), process.returncode) for process in processes] == [(("3\n", ""), 0)] * 4
    assert sorted(sqlite_store.run_ids()) == runs


def test_a_living_process_holds_its_run_and_a_dead_one_does_not(start, database):
    """Its death frees the run at once, whatever the clock says; a zombie is dead."""
    process = start(RUN, 1_000_000)
    process.stdout.readline()
    store = SqliteStore(database, WallClock())
    with pytest.raises(Busy, match=f"held by process {process.pid} on "):
        store.acquire(RUN, FAR_AWAY)
    assert store.holder(RUN)["pid"] == process.pid
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert store.holder(RUN) is None
    assert store.acquire(RUN, FAR_AWAY).epoch == 2
    store.close()


def test_a_process_that_is_silent_can_be_replaced_and_never_appends_again(start, database):
    """Its lease goes to another one when its heartbeat is old; its next append is refused."""
    process = start(RUN, 1, "wait")
    process.stdout.readline()
    store = SqliteStore(database, LaterClock())
    lease = store.acquire(RUN, FAR_AWAY)
    assert lease.epoch == 2
    before = store.append(lease, [run_started(2)]).last_seq
    _out, err = process.communicate("go on\n")
    assert "Fenced" in err
    assert store.state(RUN).last_seq == before
    store.close()


class LaterClock(WallClock):
    """A clock on which every heartbeat of the present is old, and which waits for nobody."""

    def now(self) -> datetime:
        return super().now() + timedelta(milliseconds=2 * limits.LEASE_TTL_MS)

    def sleep(self, seconds: float) -> None:
        """Looks again at once."""


def test_a_reader_sees_what_another_process_appends(start, sqlite_store, database, clock):
    """The fold goes on from where the reader last looked."""
    process = start(RUN, 3)
    process.stdout.readline()
    reader = SqliteStore.open_existing(database, clock)
    assert reader.state(RUN).last_seq >= 3
    process.communicate()
    assert reader.state(RUN).last_seq == 5
    assert [line.seq for line in reader.events(RUN, after=3)] == [4, 5]
    reader.close()


@pytest.mark.parametrize(
    ("change", "alive"),
    [
        ({}, True),
        ({"start_time": "1"}, False),
        ({"pid": 2**22 + 1}, False),
        ({"host": "renamed"}, True),
        ({"pid_ns": "pid:[1]"}, None),
        ({"pid_ns": None}, None),
        ({"boot_id": "earlier"}, None),
        ({"pid": None}, None),
        ({"start_time": ""}, None),
    ],
)
def test_a_process_is_more_than_its_pid(change, alive):
    """A reused pid has another start time; what another boot or pid namespace started cannot be told from here."""
    assert identity.is_alive(identity.this_process() | change) is alive


@pytest.mark.skipif(os.geteuid() != 0, reason="a pid namespace without a user namespace needs root")
@pytest.mark.parametrize("flags", [["--mount-proc"], []], ids=["own /proc", "foreign /proc"])
def test_a_process_of_another_pid_namespace_is_neither_alive_nor_dead(flags):
    """Its pid may be anybody's here, and where /proc shows other processes than one's own nothing can be told."""
    ask = "import json, sys; from harness.store import identity as i; print(i.is_alive(json.loads(sys.argv[1])))"
    mine = json.dumps(identity.this_process())
    argv = ["unshare", "--pid", "--fork", *flags, sys.executable, "-c", ask, mine]
    told = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "None"
