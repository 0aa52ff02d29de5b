"""One coordinator for a run; several runs on one repository."""

from __future__ import annotations

import platform
import signal
import sqlite3
from contextlib import closing

from support.checker import check, fingerprint
from support.coordinators import attempts, ended, run_plan, started, wait_until
from support.workbench import Workbench, shell, write

from harness.model import limits


def waiting(bench: Workbench, name: str = "x.txt") -> dict:
    gate = bench.root / "gate"
    return shell(f"echo half > {name}; while ! test -e {gate}; do sleep 0.02; done; echo whole > {name}", owns=[name])


def silence(bench: Workbench) -> None:
    """As if the last sign of life were long ago."""
    with closing(sqlite3.connect(bench.files / ".orchestrix/local/state.db", timeout=20)) as database:
        database.execute("UPDATE leases SET heartbeat_at = '2001-01-01T00:00:00.000000Z'")
        database.commit()


def test_a_live_run_is_busy_for_everybody_else(bench: Workbench) -> None:
    """resume, run with the same id and land exit 6 and name the holder, for people and machines; the run goes on."""
    args = run_plan(bench, waiting(bench))
    with started(bench, *args) as first:
        first.until_written("x.txt")
        for again in (("resume", "r1", "--json"), args):
            busy = bench.call(*again)
            assert busy.code == 6
            error = busy.envelope["error"]
            assert (error["code"], error["run_id"]) == ("busy", "r1")
            assert (error["holder"]["pid"], error["holder"]["host"]) == (first.pid, platform.node())
            assert f"process {first.pid} on {platform.node()}" in error["message"]
        assert bench.call("status", "r1", "--json").data["status"] == "running"
        assert bench.call("retry", "r1", "0").code == 6
        (bench.root / "gate").touch()
        assert first.end().reasons == ["merged"]
    assert attempts(bench) == {"0": 1}


def test_a_stopped_coordinator_that_was_replaced_does_nothing_more(bench: Workbench) -> None:
    """Its lease ran out, another one finished the run: awake again it exits 6, without a second merge or event."""
    with started(bench, *run_plan(bench, waiting(bench), write("y.txt", "y\n"))) as old:
        old.until_written("x.txt")
        old.until_logged("agent.subagent_waiting_for_merge", task="1")
        old.send(signal.SIGSTOP)
        assert bench.call("resume", "r1").code == 6
        silence(bench)
        (bench.root / "gate").touch()
        done = ended(bench, "resume", "r1", "--json")
        assert (done.code, done.reasons) == (0, ["merged", "merged"])
        events, refs = bench.events(), bench.git("for-each-ref")
        old.send(signal.SIGCONT)
        replaced = old.end()
    assert replaced.code == 6
    assert replaced.envelope["error"]["code"] == "fenced"
    assert bench.events() == events
    assert bench.git("for-each-ref") == refs
    assert bench.tree(done.data["head"])["x.txt"] == "whole"
    assert sum(event["type"] == "agent.worktree_merged" for event in events) == 2


def test_a_stopped_coordinator_that_is_replaced_while_the_other_works(bench: Workbench) -> None:
    """Awake while its successor is still at it, it leaves the successor's workspace alone."""
    with started(bench, *run_plan(bench, waiting(bench))) as old:
        old.until_written("x.txt")
        old.send(signal.SIGSTOP)
        silence(bench)
        with started(bench, "resume", "r1", "--json") as new:
            new.until_logged("attempt.process_started", purpose="agent", count=2)
            old.send(signal.SIGCONT)
            assert old.end().code == 6
            (bench.root / "gate").touch()
            done = new.end()
    assert (done.code, done.reasons, attempts(bench)) == (0, ["merged"], {"0": 2})


def test_a_coordinator_gives_signs_of_life(bench: Workbench, monkeypatch) -> None:
    """The heartbeat is renewed while a step runs, so a long step never loses its run."""
    monkeypatch.setattr(limits, "LEASE_HEARTBEAT_MS", 20)
    done = bench.run(shell("sleep 0.3; echo 1 > x.txt"))
    assert done.code == 0
    with closing(sqlite3.connect(bench.files / ".orchestrix/local/state.db")) as database:
        acquired, beat, released = database.execute("SELECT acquired_at, heartbeat_at, released FROM leases").fetchone()
    assert beat > acquired
    assert released == 1


def test_two_runs_at_once_do_not_disturb_each_other(bench: Workbench) -> None:
    """Side by side on one repository, the one failing, the other not: each ends as it would alone."""
    before = fingerprint(bench.files)
    good = [waiting(bench, f"good{n}.txt") for n in range(3)]
    bad = [waiting(bench, "bad.txt"), shell("echo 1 > lost.txt; exit 3", owns=["lost.txt"]), write("a.txt", "bad\n")]
    with started(bench, *run_plan(bench, *good, flags=("-j", "3"))) as first:
        first.until_written("good2.txt")
        plan = str(bench.plan(*bad))
        with started(bench, "run", plan, "--json", "--run-id", "r2", "--sandbox", "none") as second:
            second.until_written("bad.txt")
            wait_until(lambda: "agent.subagent_closed" in bench.types("1", "r2"), "the failure in r2")
            (bench.root / "gate").touch()
            one, two = first.end(), second.end()
    assert (one.code, one.reasons) == (0, ["merged"] * 3)
    assert (two.code, two.reasons) == (1, ["merged", "agent_failed", "merged"])
    assert sorted(bench.tree(one.data["head"])) == [
        "README.md",
        "a.txt",
        "good0.txt",
        "good1.txt",
        "good2.txt",
        "src/lib.py",
    ]
    assert sorted(bench.tree(two.data["head"])) == ["README.md", "a.txt", "bad.txt", "src/lib.py"]
    assert not [event for event in (*bench.events("r1"), *bench.events("r2")) if event["type"].startswith("parent_")]
    assert check(bench.files, before=before) == []
