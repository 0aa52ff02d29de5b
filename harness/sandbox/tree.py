"""Process trees as /proc shows them: who descends from whom, and signals that reach only whom they mean.

The reaper imports this at every start, so only what loads quickly is used here: neither typing nor dataclasses.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SWEEP_PAUSE = 0.002
_PIECE = 65_536
_LOOKS = 2  # one look can miss a process that began after the listing, if its parent ended before it was read


class Process:
    """One line of /proc: start times are not reused within a boot, pids are."""

    __slots__ = ("parent", "pid", "session", "start_time", "state")

    def __init__(self, pid: int, parent: int, session: int, start_time: str, state: str) -> None:
        self.pid = pid
        self.parent = parent
        self.session = session
        self.start_time = start_time
        self.state = state

    @property
    def dead(self) -> bool:
        return self.state in "ZX"


def read(pid: int) -> Process | None:
    """The process that has this pid now; None when there is none."""
    try:
        text = _read(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name may hold spaces and brackets; what follows the last bracket is regular.
    fields = text[text.rindex(b")") + 2 :].split()
    return Process(pid, int(fields[1]), int(fields[3]), fields[19].decode(), fields[0].decode())


def _read(path: str) -> bytes:
    """A file of /proc whole; a file object would cost more than the read itself."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = []
        while piece := os.read(handle, _PIECE):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(handle)


def everyone() -> list[Process]:
    found = (read(int(name)) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - pathlib costs more than the listing itself
    return [process for process in found if process is not None]


def count() -> int:
    """How many processes there are on the machine: no tree can be larger."""
    return sum(name.isdigit() for name in os.listdir("/proc"))  # noqa: PTH208 - pathlib costs more than the listing itself


def children(pid: int) -> list[int]:
    """Those that its main thread started or that it adopted, also the dead ones."""
    try:
        return [int(word) for word in _read(f"/proc/{pid}/task/{pid}/children").split()]
    except FileNotFoundError:  # gone, or a kernel built without this file
        return [process.pid for process in everyone() if process.parent == pid]


def descendants(root: int) -> list[Process]:
    """Everything alive below `root`, parents before children."""
    return below({root}, everyone())


def below(roots: set[int], processes: list[Process]) -> list[Process]:
    """Those of `processes` that are alive below any of `roots`; the dead are left out, what is below them is not."""
    children: dict[int, list[Process]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [*roots]
    while waiting:
        these = children.pop(waiting.pop(), [])
        found += these
        waiting += [process.pid for process in these]
    return [process for process in found if not process.dead]


def send(process: Process, number: int) -> None:
    """A signal to exactly this process; a stranger that got its pid meanwhile is left alone."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        now = read(process.pid)
        if now is not None and now.start_time == process.start_time:
            # It may have ended meanwhile, or have gained another user's rights.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)


def terminate(processes: Iterable[Process]) -> None:
    """Asks to end; a stopped process hears it only after it was continued."""
    for process in processes:
        send(process, signal.SIGTERM)
        send(process, signal.SIGCONT)


def sweep(find: Callable[[], list[Process]], seconds: float) -> bool:
    """Kills whatever `find` finds until it finds nothing; False when something was still there at the end.

    All are stopped before any is killed: whoever forks faster than /proc can be read would outrun the killing.
    """
    until = time.monotonic() + seconds
    empty_looks = 0
    while empty_looks < _LOOKS:
        found = find()
        if not found:
            empty_looks += 1
            continue
        empty_looks = 0
        _stop_and_kill(found, find, until)
        if time.monotonic() > until:
            return not find()
        time.sleep(_SWEEP_PAUSE)
    return True


def _stop_and_kill(found: list[Process], find: Callable[[], list[Process]], until: float) -> None:
    stopped: set[tuple[int, str]] = set()
    while fresh := [process for process in found if (process.pid, process.start_time) not in stopped]:
        for process in fresh:
            send(process, signal.SIGSTOP)
            stopped.add((process.pid, process.start_time))
        if time.monotonic() > until:
            break
        found = find()
    for process in found:
        send(process, signal.SIGKILL)
