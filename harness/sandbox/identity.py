"""Who a process is beyond its pid, so that an orphan can be ended and a stranger never is."""

from __future__ import annotations

import os
import signal
import time
from functools import cache
from pathlib import Path

from harness.errors import EnvironmentProblem
from harness.model.process import ProcessIdentity
from harness.sandbox import tree

_PATIENCE_SECONDS = 5.0
_PAUSE_SECONDS = 0.005


@cache
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def probe(pid: int) -> ProcessIdentity | None:
    """The identity of a running process; None when no such process is there."""
    process = tree.read(pid)
    if process is None:
        return None
    return ProcessIdentity(pid=pid, start_time=process.start_time, boot_id=boot_id())


def alive(identity: ProcessIdentity) -> bool:
    """Whether this very process still runs; a zombie does not."""
    process = tree.read(identity.pid)
    if process is None or process.dead:
        return False
    return process.start_time == identity.start_time and identity.boot_id == boot_id()


def end(identity: ProcessIdentity) -> bool:
    """Kills a process that a dead coordinator left behind, and all below it; False when it was gone already.

    The root goes last: while it lives, what it adopts can still be found below it.
    Raises EnvironmentProblem when something survives.
    """
    if not alive(identity):
        return False
    gone = tree.sweep(lambda: tree.descendants(identity.pid), _PATIENCE_SECONDS)
    root = tree.read(identity.pid)
    if root is not None and root.start_time == identity.start_time:
        tree.send(root, signal.SIGKILL)
    if not gone or not _wait_for_death(identity):
        raise EnvironmentProblem(
            f"process {identity.pid}, left by an earlier coordinator, does not end",
            hint=f"look at it with `ps -fp {identity.pid}`, end it, then try again",
        )
    return True


def _wait_for_death(identity: ProcessIdentity) -> bool:
    until = time.monotonic() + _PATIENCE_SECONDS
    while alive(identity):
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True


def own() -> ProcessIdentity:
    """The identity of this process."""
    process = probe(os.getpid())
    if process is None:
        raise EnvironmentProblem("/proc does not show this process", hint="mount /proc")
    return process
