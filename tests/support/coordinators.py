"""Coordinators as processes of their own: waited for, killed, stopped, asked to end."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support.workbench import Result, Workbench

from harness.sandbox import tree

PATIENCE_SECONDS = 60.0
KILLED = -9


def wait_until(holds: Callable[[], object], what: str) -> None:
    """Polls; a test that waits for something that never comes says for what."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < until, f"waited in vain: {what}"
        time.sleep(0.01)


def holder_of(coordinator: int) -> int | None:
    """The process that holds the mounts of its workspaces."""
    for entry in glob.glob("/proc/[0-9]*/cmdline"):  # noqa: PTH207 - processes disappear while they are listed
        with contextlib.suppress(OSError):
            words = Path(entry).read_bytes().split(b"\0")
            if b"harness.namespace_holder" in b" ".join(words) and words[-2] == str(coordinator).encode():
                return int(entry.split("/")[2])
    return None


def is_gone(pid: int) -> bool:
    """Whether it has ended; this process may have become the one that would have to bury it."""
    found = tree.read(pid)
    return found is None or found.dead


def until_alone() -> None:
    """Waits until no process works in a workspace any more: without a namespace a dead coordinator's tree ends a moment later."""
    home = os.environ["XDG_STATE_HOME"]

    def alone() -> bool:
        for entry in glob.glob("/proc/[0-9]*/cwd"):  # noqa: PTH207 - processes disappear while they are listed
            with contextlib.suppress(OSError):
                if str(Path(entry).readlink()).startswith(home):
                    return False
        return True

    wait_until(alone, "the end of what a dead coordinator left")


class Coordinator:
    """One live command of the harness."""

    def __init__(self, bench: Workbench, process: subprocess.Popen[str]) -> None:
        self.bench = bench
        self.process = process
        self._began = time.monotonic()

    @property
    def pid(self) -> int:
        return self.process.pid

    def until_written(self, name: str) -> Path:
        """Waits until a step has written this file in its workspace; returns where.

        An overlay is mounted for its coordinator alone; everybody sees the layer that takes the changes.
        """
        runs = f"{os.environ['XDG_STATE_HOME']}/orchestrix/*/*"

        def written() -> list[str]:
            patterns = (f"{runs}/trees/*/{name}", f"{runs}/layers/*/upper/{name}")
            return [path for pattern in patterns for path in glob.glob(pattern)]  # noqa: PTH207 - pathlib's stumbles over what disappears

        wait_until(lambda: self._alive() and bool(written()), f"{name} in a workspace")
        return Path(written()[0])

    def until_logged(self, kind: str, count: int = 1, **fields: Any) -> None:
        """Waits until so many events of a type with these payload fields are in the log."""

        def logged() -> bool:
            found = [event["payload"] for event in _log(self.bench) if event["type"] == kind]
            return self._alive() and sum(fields.items() <= payload.items() for payload in found) >= count

        wait_until(logged, f"{count} {kind} {fields}")

    def _alive(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()
        return True

    def kill(self) -> None:
        """kill -9, and nothing gets to say goodbye."""
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_SECONDS)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end_soon(self) -> Result:
        """Waits for its end, which must not take longer than ten times what it took to come here."""
        came = time.monotonic() - self._began
        result = self.end()
        took = time.monotonic() - self._began - came
        assert took < 10 * came, f"it took {took:.1f} s to end what took {came:.1f} s to begin"
        return result

    def end(self) -> Result:
        """Waits for its end."""
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        return Result(self.process.returncode, out, err)


def _log(bench: Workbench) -> list[dict[str, Any]]:
    shown = bench.call("events", "latest", "--jsonl")
    return [json.loads(line) for line in shown.out.splitlines()] if shown.code == 0 else []


@contextlib.contextmanager
def started(bench: Workbench, *args: str, env: dict[str, str] | None = None) -> Iterator[Coordinator]:
    """A coordinator that does not outlive its test."""
    process = bench.process(*args, env=env)
    try:
        yield Coordinator(bench, process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.communicate()


def run_plan(bench: Workbench, *steps: dict[str, Any], flags: tuple[str, ...] = (), **fields: Any) -> tuple[str, ...]:
    """The arguments that run a plan of these steps as run `r1`."""
    return ("run", str(bench.plan(*steps, **fields)), "--json", "--run-id", "r1", *flags)


def ended(bench: Workbench, *args: str, env: dict[str, str] | None = None) -> Result:
    """A coordinator's whole life."""
    with started(bench, *args, env=env) as coordinator:
        return coordinator.end()


def attempts(bench: Workbench, run_id: str = "latest") -> dict[str, int]:
    """How often each step was tried."""
    tried: dict[str, int] = {}
    for event in bench.events(run_id):
        if event["type"] == "agent.subagent_attempt":
            tried[event["task_id"]] = tried.get(event["task_id"], 0) + 1
    return tried


def kept(bench: Workbench, run_id: str = "latest") -> list[dict[str, str]]:
    """The files of every piece of work that was kept, in the order of the log."""
    return [bench.tree(event["payload"]["commit"]) for event in bench.events(run_id) if event["type"] == "work.kept"]
