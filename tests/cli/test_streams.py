"""Streams that fail: every command ends with the status that it has anyway, buffered or not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.checker import check
from support.workbench import ROOT, Workbench, shell, write

COMMANDS = (
    "--version",
    "--help",
    "version --json",
    "schema",
    "validate {plan}",
    "graph {plan}",
    "list",
    "status",
    "status latest --json",
    "status nowhere",
    "status nowhere --json",
    "show latest 0",
    "events",
    "events --jsonl",
    "logs",
    "report",
    "diff",
    "doctor",
    "audit",
    "metrics",
    "trace",
    "config show",
    "agents list",
    "completion bash",
    "clean --dry-run",
)
BUFFERING = pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
Opened = Callable[[], Iterator[int]]


@contextmanager
def full() -> Iterator[int]:
    with Path("/dev/full").open("w") as file:
        yield file.fileno()


@contextmanager
def unread() -> Iterator[int]:
    """A pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """A repository with one run that printed something and merged."""
    bench = Workbench(tmp_path_factory.mktemp("streams"))
    bench.commit({"a.txt": "one\n"}, "Start")
    started = _ended(bench, f"run {bench.plan(shell('echo said; echo 1 > b.txt'))} --sandbox none")
    assert started.returncode == 0, started.stderr
    return bench


def _ended(
    bench: Workbench, words: str, unbuffered: str = "", **streams: int | None
) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "harness", *words.format(plan=bench.root / "plan.json").split()]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered}
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(argv, cwd=bench.files, env=env, check=False, text=True, timeout=120, **given)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_stream_that_fails_changes_no_outcome_but_a_lost_result(done: Workbench, command: str) -> None:
    """Stderr never decides. Stdout decides only when a result could not be written and nobody went away."""
    plain = _ended(done, command)
    for unbuffered in ("", "1"):
        with full() as target:
            lost = _ended(done, command, unbuffered, stdout=target)
        assert lost.returncode == (plain.returncode or (3 if plain.stdout else 0)), lost.stderr
        if plain.stdout:
            assert lost.stderr.endswith("orchestrix: No space left on device\n"), lost.stderr
        assert lost.stderr.count("No space left") == bool(plain.stdout)
        with unread() as target:
            left = _ended(done, command, unbuffered, stdout=target)
        assert (left.returncode, left.stderr) == (plain.returncode, plain.stderr)
        with full() as target:
            untold = _ended(done, command, unbuffered, stderr=target)
        assert untold.returncode == plain.returncode
    with full() as first, full() as second:
        assert _ended(done, command, stdout=first, stderr=second).returncode == lost.returncode


@BUFFERING
@pytest.mark.parametrize("opened", [full, unread])
@pytest.mark.parametrize(
    ("flag", "stream", "lost"),
    [("--json", "stdout", 3), ("", "stdout", 3), ("--jsonl", "stdout", 0), ("--verbose", "stderr", 0)],
)
def test_a_run_ends_as_it_would_whoever_reads(
    bench: Workbench, *, flag: str, stream: str, lost: int, opened: Opened, unbuffered: str
) -> None:
    """Progress that cannot be told ends no run; only a result that a full disk swallowed is an error of its own."""
    bench.plan(write("c.txt", "1\n"))
    with opened() as target:
        ended = _ended(bench, f"run {{plan}} --sandbox none {flag}", unbuffered, **{stream: target})
    assert ended.returncode == (lost if opened is full else 0), ended.stderr
    state = bench.call("status", "latest", "--json").data
    assert state["status"] == "succeeded"
    assert check(bench.files) == []


@BUFFERING
@pytest.mark.parametrize("opened", [full, unread])
@pytest.mark.parametrize("flag", ["--json", "--jsonl", ""])
def test_a_failed_run_is_told_by_its_status_whoever_reads(
    bench: Workbench, flag: str, opened: Opened, unbuffered: str
) -> None:
    """The steps' failure is worth more than the disk's."""
    bench.plan(shell("exit 1"))
    with opened() as target:
        ended = _ended(bench, f"run {{plan}} --sandbox none {flag}", unbuffered, stdout=target)
    plain = bench.call("status", "latest", "--json").data
    assert plain["status"] == "failed"
    assert ended.returncode == bench.call("run", str(bench.root / "plan.json"), "--sandbox", "none").code


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@BUFFERING
def test_a_stream_that_was_closed_from_the_start_is_nowhere(bench: Workbench, closed: str, unbuffered: str) -> None:
    """No file of the run gets its number, and programs that are started find it open."""
    bench.plan(shell("echo said; echo told >&2; echo 1 > c.txt"))
    script = f'"{sys.executable}" -m harness run "{bench.root / "plan.json"}" --sandbox none {closed}'
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered}
    ended = subprocess.run(["sh", "-c", script], cwd=bench.files, env=env, check=False, capture_output=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert bench.tree(bench.call("status", "latest", "--json").data["head"])["c.txt"] == "1"
    assert check(bench.files) == []
    assert bench.call("audit").code == 0


def test_a_reader_that_is_slow_loses_nothing(done: Workbench) -> None:
    """Also where a terminal or pipe was made non-blocking by another program that shares it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    argv = [sys.executable, "-m", "harness", "schema"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(argv, cwd=done.files, env=env, stdout=writer) as process, os.fdopen(reader, "rb") as pipe:
        os.write(writer, b"x" * 65536)  # full, before the program has loaded
        os.close(writer)
        seen = pipe.read()
    assert process.returncode == 0
    assert seen.lstrip(b"x").decode() == _ended(done, "schema").stdout
