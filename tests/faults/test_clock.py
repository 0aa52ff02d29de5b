"""The wall clock jumps: order, leases and results do not hang on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta, tzinfo

import pytest
from faults.held import LiveRun, held
from support.checker import check
from support.workbench import ROOT, Workbench, shell, write

from harness.engine import clock
from harness.engine.clock import SystemClock

_DAY = timedelta(days=1)


@pytest.mark.parametrize("jump", [-_DAY, _DAY, -20_000 * _DAY], ids=["back", "forward", "to the seventies"])
def test_a_jump_in_the_middle_of_a_run_changes_nothing(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, jump: timedelta
) -> None:
    """Every third look at the clock is a day off: the log stays gap-free and chained, the result is the same."""
    now = SystemClock.now
    looks = iter(range(1_000_000))

    def jumping(self: SystemClock) -> datetime:
        return now(self) + (jump if next(looks) % 3 == 2 else timedelta())

    monkeypatch.setattr(SystemClock, "now", jumping)
    done = bench.run(
        write("c.txt", "1\n", checks=["true"]), shell("sleep 0.1; echo 2 > d.txt", owns=["d.txt"]), flags=("-j", "2")
    )
    assert (done.code, done.reasons) == (0, ["merged", "merged"]), done.out
    assert bench.tree(done.data["head"]) == {"a.txt": "one", "b.txt": "two", "c.txt": "1", "d.txt": "2"}
    assert check(bench.files) == []
    assert bench.call("audit").code == 0


_SHIFTED = """
import sys
from datetime import timedelta
from harness.cli import app
from harness.engine.clock import SystemClock
now = SystemClock.now
SystemClock.now = lambda self: now(self) + timedelta(seconds=int(sys.argv[1]))
sys.exit(app.run(sys.argv[2:]))
"""


@pytest.mark.parametrize("jump", [-_DAY, timedelta(minutes=2), 400 * _DAY], ids=["day-back", "two-minutes", "400-days"])
def test_a_second_coordinator_with_another_clock_does_not_take_a_live_run(bench: Workbench, jump: timedelta) -> None:
    """It sees the heartbeat change and exits 6; the agent is started once, and the first coordinator ends its run."""
    bench.plan(held("c.txt"))
    run = LiveRun(bench)
    run.workspace()
    argv = [sys.executable, "-c", _SHIFTED, str(int(jump.total_seconds())), "resume", "latest", "--json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    second = subprocess.run(argv, cwd=bench.files, env=env, capture_output=True, text=True, check=False)
    assert second.returncode == 6, second
    assert json.loads(second.stdout)["error"]["holder"]["pid"] == run.process.pid
    run.let_go()
    done = run.end()
    assert (done.code, done.reasons) == (0, ["merged"])
    assert [event["type"] for event in bench.events()].count("agent.subagent_attempt") == 1


def test_a_clock_that_is_set_during_a_run_ends_no_budget_of_time(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wall clock is read once; from there on the time of a run is counted."""
    jumps = iter(range(1_000_000))

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) + next(jumps) * _DAY

    monkeypatch.setattr(clock, "datetime", Jumping)
    done = bench.run(write("c.txt", "1\n"), write("d.txt", "2\n"), flags=("--budget", "wall_time=10h"))
    assert (done.code, done.reasons) == (0, ["merged", "merged"]), done.out


@pytest.mark.parametrize("jump", [-_DAY, _DAY], ids=["back", "forward"])
def test_a_jump_between_death_and_resume_does_not_lock_anybody_out(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, jump: timedelta
) -> None:
    """The lease of a dead coordinator is known as such by its process, whatever its heartbeat says."""
    bench.plan(held("c.txt"), write("d.txt", "2\n"))
    run = LiveRun(bench)
    run.workspace()
    run.process.kill()
    run.process.communicate()
    now = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda self: now(self) + jump)
    done = bench.call("resume", "--json")
    assert (done.code, done.reasons) == (0, ["merged", "merged"]), done.out
    assert check(bench.files) == []
