"""Disks that fill up or turn read-only, and a process that runs out of descriptors: stop, say so, go on afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest
from faults.held import LiveRun, stopped, until
from support.checker import check
from support.workbench import ROOT, Workbench, shell, write

_RESULT = {"a.txt": "one", "b.txt": "two", "held.txt": "held", "after.txt": "after"}
Fault = Callable[[Path], AbstractContextManager[None]]


@contextmanager
def _full(disk: Path) -> Iterator[None]:
    """No byte is left; what was written before stays."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    yield
    filler.unlink()


@contextmanager
def _read_only(disk: Path) -> Iterator[None]:
    subprocess.run(["mount", "-o", "remount,bind,ro", disk], check=True)
    yield
    subprocess.run(["mount", "-o", "remount,bind,rw", disk], check=True)


def _plan(bench: Workbench, gate: Path) -> None:
    """The step waits outside of its workspace: there may be no way to write into that when it is let go."""
    script = f"echo held > held.txt; touch '{gate}.up'; until [ -e '{gate}' ]; do sleep 0.02; done"
    bench.plan(shell(script, owns=["held.txt"]), write("after.txt", "after\n", needs=[0]))


def _fails_and_finishes(bench: Workbench, disk: Path, fault: Fault, words: str) -> None:
    gate = bench.root / "gate"
    _plan(bench, gate)
    run = LiveRun(bench, "--sandbox", "none")
    until(Path(f"{gate}.up").exists, "the step")
    with fault(disk):
        gate.touch()
        stopped(run.end(), 3, words)
    done = bench.call("resume", "--json")
    assert (done.code, done.reasons) == (0, ["merged", "merged"]), done.out
    assert bench.tree(done.data["head"]) == _RESULT
    assert check(bench.files) == []
    assert bench.call("audit").code == 0


@pytest.mark.parametrize(
    ("fault", "words"), [(_full, "No space left on device"), (_read_only, "Read-only file system")]
)
def test_a_disk_of_workspaces_that_fails_stops_the_run(
    bench: Workbench, small_disk: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault, words: str
) -> None:
    """Files that cannot be taken whole are not judged: the run stops, and with the disk back it ends well."""
    monkeypatch.setenv("XDG_STATE_HOME", str(small_disk))
    _fails_and_finishes(bench, small_disk, fault, words)


def test_a_disk_of_the_repository_that_is_full_stops_the_run(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log and objects have no room: nothing acts after the append that failed."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    bench = Workbench(small_disk)
    bench.commit({"a.txt": "one\n", "b.txt": "two\n"}, "Start")
    bench.root = tmp_path
    _fails_and_finishes(bench, small_disk, _full, "")


def test_a_read_only_repository_is_refused_before_anything_starts(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence names the place; reading what is there still works."""
    bench = Workbench(small_disk)
    bench.commit({"a.txt": "one\n"}, "Start")
    bench.root = tmp_path
    plan = str(bench.plan(write("b.txt", "1\n")))
    with bench.process("run", plan, "--json") as first:  # its files are closed for certain when it has ended
        assert (first.wait(), first.stderr.read()) == (0, "")
    with _read_only(small_disk):
        stopped(bench.call("run", plan, "--json"), 3, str(small_disk))
        assert bench.call("status").code == 0
        assert bench.call("audit").code == 0
    assert bench.run(write("c.txt", "1\n")).code == 0
    assert check(bench.files) == []


def test_few_descriptors_stop_the_run_wherever_they_run_out(bench: Workbench, tmp_path: Path) -> None:
    """From hopeless to just enough: a documented status and one sentence, and the same tree once there are more."""
    bench.plan(shell("echo held > held.txt", owns=["held.txt"]), write("after.txt", "after\n", checks=["true"]))
    fresh = shutil.copytree(bench.files, tmp_path / "fresh")
    codes = []
    for most in (9, 14, 18, 22, 40):
        shutil.rmtree(bench.files)
        shutil.copytree(fresh, bench.files)
        done = _with_descriptors(bench, most)
        assert done.stderr == "", most
        codes.append(done.returncode)
        again = bench.call("resume", "--json")
        if again.code == 2:  # nothing had been logged
            again = bench.call("run", str(bench.root / "plan.json"), "--json")
        assert (again.code, again.reasons) == (0, ["merged", "merged"]), (most, done.stdout, again.out)
        assert bench.tree(again.data["head"]) == _RESULT
        assert check(bench.files) == []
    assert set(codes) == {0, 3}


def _with_descriptors(bench: Workbench, most: int) -> subprocess.CompletedProcess[str]:
    """The limit comes after the interpreter has loaded what it needs."""
    program = (
        "import resource, sys; from harness.cli import app; import harness.runs.start, harness.vcs.repository;"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most})); sys.exit(app.run(sys.argv[1:]))"
    )
    argv = [sys.executable, "-c", program, "run", str(bench.root / "plan.json"), "--json", "-j", "1"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(argv, cwd=bench.files, env=env, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("flag", "stream", "code"), [("--json", "stdout", 3), ("--jsonl", "stdout", 0), ("--verbose", "stderr", 0)]
)
def test_a_full_disk_behind_the_output_hides_no_outcome(bench: Workbench, flag: str, stream: str, code: int) -> None:
    """Progress that nobody can read ends no run; a result that could not be printed is told on stderr."""
    plan = str(bench.plan(write("c.txt", "1\n")))
    argv = [sys.executable, "-m", "harness", "run", plan, flag]
    with Path("/dev/full").open("w") as full:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full}
        done = subprocess.run(
            argv, cwd=bench.files, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False, text=True, **streams
        )
    assert done.returncode == code
    if code:
        assert done.stderr == "orchestrix: No space left on device\n"
    assert bench.call("status", "latest", "--json").data["status"] == "succeeded"
    assert check(bench.files) == []
