"""Stopping a run: children gone, work kept, resumable to the same tree, whoever asked and whatever was going on."""

from __future__ import annotations

import signal
import sqlite3
import time
from collections.abc import Iterator

import pytest
from sandbox.survivors import kill_marked, marked, wait_for_marked
from support.coordinators import Coordinator, attempts, ended, kept, run_plan, started, wait_until
from support.workbench import Workbench, shell, write


@pytest.fixture
def word(tmp_path) -> Iterator[str]:
    """A word in the argument lists of a test's processes."""
    made = f"cancelled-{tmp_path.name}-{time.monotonic_ns()}"
    yield made
    kill_marked(made)


def stubborn(bench: Workbench, word: str) -> dict:
    """A step that leaves half of its work and a tree that ignores TERM, until the file `gate` is there."""
    script = (
        "echo half > x.txt; test -e {gate} || {{ trap '' TERM INT HUP; (setsid sh -c 'sleep 600; exit 0' {word} &);"
        " sh -c 'sleep 600; exit 0' {word}; }}; echo whole > x.txt"
    )
    return shell(script.format(gate=bench.root / "gate", word=word), title="stubborn", owns=["x.txt"])


def plan(bench: Workbench, word: str, sandbox: str) -> tuple[str, ...]:
    return run_plan(bench, write("first.txt", "1\n"), stubborn(bench, word), flags=("--sandbox", sandbox))


def until_running(run: Coordinator, word: str) -> None:
    run.until_written("x.txt")
    run.until_logged("agent.subagent_closed", task="0")
    wait_for_marked(word, 2)


def resumed_tree(bench: Workbench) -> dict[str, str]:
    (bench.root / "gate").touch()
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons) == (0, ["merged", "merged"])
    return bench.tree(done.data["head"])


WHOLE = {
    "a.txt": "one\ntwo\nthree",
    "src/lib.py": "VALUE = 1",
    "README.md": "# Sample",
    "first.txt": "1",
    "x.txt": "whole",
}


@pytest.mark.parametrize("sandbox", ["auto", "none"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)], ids=["INT", "TERM", "HUP"]
)
def test_a_signal_stops_the_run_in_order(
    bench: Workbench, word: str, sandbox: str, number: signal.Signals, code: int
) -> None:
    """Soon: no child is left, the work is kept, the status is `cancelled`, resume ends in the same tree."""
    with started(bench, *plan(bench, word, sandbox)) as run:
        until_running(run, word)
        run.send(number)
        stopped = run.end_soon()
    assert stopped.code == code
    assert stopped.envelope["error"]["code"] == "interrupted"
    assert marked(word) == []
    assert bench.call("status", "r1", "--json").data["status"] == "cancelled"
    assert [files["x.txt"] for files in kept(bench)] == ["half"]
    assert resumed_tree(bench) == WHOLE
    assert attempts(bench) == {"0": 1, "1": 2}


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_cancel_from_another_terminal(bench: Workbench, word: str, *, stopped: bool) -> None:
    """It returns when the run is let go of, also by a coordinator that ^Z had stopped; a second cancel finds nobody."""
    with started(bench, *plan(bench, word, "auto")) as run:
        until_running(run, word)
        if stopped:
            run.send(signal.SIGSTOP)
        cancelled = bench.call("cancel", "r1", "--json")
        assert (cancelled.code, cancelled.data) == (0, {"run_id": "r1", "cancelled": True})
        assert run.end().code == 143
    assert marked(word) == []
    assert bench.call("cancel", "r1").code == 2
    assert resumed_tree(bench) == WHOLE


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_a_second_interrupt_does_not_wait(bench: Workbench, word: str, sandbox: str) -> None:
    """The tree that ignores TERM goes with the coordinator; its work is kept by the resume."""
    with started(bench, *plan(bench, word, sandbox)) as run:
        until_running(run, word)
        # Two signals at once are one to the kernel: an impatient finger is slower than that.
        wait_until(lambda: run.process.poll() is not None or run.send(signal.SIGINT), "the end")
        assert run.end().code == 130
    wait_for_marked(word, 0)
    assert resumed_tree(bench) == WHOLE
    assert [files["x.txt"] for files in kept(bench)] == ["half"]


def test_a_second_interrupt_ends_a_run_whose_coordinator_is_blocked(bench: Workbench, word: str) -> None:
    """Within 10 s of it, although several agents ignore TERM, one is stopped, and the database is locked: nothing is lost."""
    agents = [stubborn(bench, word) | {"title": name, "owns": ["x.txt"]} for name in ("one", "two")]
    frozen = shell(
        f"echo half > y.txt; test -e {bench.root / 'gate'} || kill -STOP $$; echo whole > y.txt", owns=["y.txt"]
    )
    args = run_plan(bench, *agents, frozen, overlap="allow", flags=("-j", "3"))
    with started(bench, *args) as run:
        wait_for_marked(word, 4)
        run.until_written("y.txt")
        database = sqlite3.connect(bench.files / ".orchestrix/local/state.db", isolation_level=None)
        try:
            database.execute("BEGIN IMMEDIATE")
            run.send(signal.SIGINT)
            wait_until(lambda: len(marked(word)) < 4, "the first signal to be acted on")
            began = time.monotonic()
            run.send(signal.SIGINT)
            assert run.end().code == 130
            assert time.monotonic() - began < 10
        finally:
            database.close()
    wait_for_marked(word, 0)
    assert bench.call("status", "r1", "--json").data["ended"] is False
    (bench.root / "gate").touch()
    done = ended(bench, "resume", "r1", "--json")
    assert done.code == 0, done.out
    assert sorted({files.get("x.txt", files.get("y.txt")) for files in kept(bench)}) == ["half"]


def test_stopping_on_request_is_no_death(bench: Workbench, word: str) -> None:
    """With no recovery allowed a run can still be stopped and resumed as often as one likes."""
    args = plan(bench, word, "auto")
    for again in (args, ("resume", "r1", "--json")):
        with started(bench, *again, env={"ORCHESTRIX_RECOVERIES": "0"}) as run:
            until_running(run, word)
            run.send(signal.SIGTERM)
            assert run.end().code == 143
    assert resumed_tree(bench) == WHOLE
    assert attempts(bench) == {"0": 1, "1": 3}


@pytest.mark.parametrize("where", ["workspace", "merged"])
def test_a_stop_while_checks_run(bench: Workbench, where: str) -> None:
    """On the workspace the attempt is made again; on the merged tree the step stays parked."""
    gate = f"while ! test -e {bench.root / 'gate'}; do sleep 0.02; done"
    check = gate if where == "workspace" else f"! test -e first.txt || {gate}"
    args = run_plan(bench, write("first.txt", "1\n"), write("x.txt", "whole\n", checks=[check]))
    with started(bench, *args) as run:
        run.until_logged("attempt.process_started", purpose="check", count=1 if where == "workspace" else 2)
        run.send(signal.SIGINT)
        assert run.end().code == 130
    assert resumed_tree(bench) == WHOLE
    assert attempts(bench)["1"] == (2 if where == "workspace" else 1)


def test_work_of_a_step_that_is_stopped_in_its_checks_is_kept(bench: Workbench) -> None:
    """`on_failure: stop` ends a later step between snapshot and verdict: its work has a ref, and is not lost later."""
    failing = shell(f"while ! test -e {bench.root / 'gate'}; do sleep 0.02; done; exit 1", owns=["a.txt"])
    args = run_plan(
        bench, failing, write("x.txt", "done\n", checks=["sleep 600"]), on_failure="stop", flags=("-j", "2")
    )
    with started(bench, *args) as run:
        run.until_logged("attempt.process_started", purpose="check", task="1")
        (bench.root / "gate").touch()
        done = run.end()
    assert (done.code, done.reasons) == (1, ["agent_failed", "stopped"])
    assert bench.tree(done.steps[1]["kept_ref"])["x.txt"] == "done"


def test_a_stop_between_attempts_does_not_wait_for_the_pause(bench: Workbench) -> None:
    """A long backoff is no reason to hang."""
    args = run_plan(bench, shell("echo 1 > x.txt; exit 1", retries=3))
    with started(bench, *args, env={"ORCHESTRIX_BACKOFF_BASE": "5m"}) as run:
        run.until_logged("attempt.finished")
        wait_until(lambda: "workspace.removed" in bench.types("0"), "the pause")
        run.send(signal.SIGTERM)
        assert run.end_soon().code == 143
