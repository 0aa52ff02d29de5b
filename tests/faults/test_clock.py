"""The wall clock jumps: order, leases and results do not hang on it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from faults.held import LiveRun, held
from support.checker import check
from support.workbench import Workbench, shell, write

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
