"""The process above a step's program where there is no PID namespace: it adopts all orphans and leaves none behind.

It runs as its own small program and is told what to do by its descriptors (see Child). An end of file on the control
socket means that the coordinator is gone or wants the end: everything below is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import marshal
import os
import resource
import select
import signal
import sys
import time

from harness.sandbox import tree

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing costs more than the rest of this file
    from typing import Any, NoReturn

_PR_SET_CHILD_SUBREAPER = 36
_CONTROL = 0
_SWEEP_SECONDS = 5.0
_ROUNDS = 200
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)


def adopt_orphans() -> None:
    """From now on orphaned descendants of this process become its children instead of init's."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main(order_handle: int) -> NoReturn:
    """Reads the order, waits for the word, runs the program, and exits with its status when nothing is left."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    adopt_orphans()
    with open(order_handle, "rb") as file:
        order = marshal.load(file)  # noqa: S302 - written by the coordinator, same interpreter; json costs 20 ms
    wakeup = _wake_on_children()  # before the fork: no death is missed
    os.write(_CONTROL, b"ready\n")
    if not os.read(_CONTROL, 16):
        os._exit(125)
    program = os.fork()
    if program == 0:
        _become(order)
    if order["stdin"] is not None:
        os.close(order["stdin"])
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    status = _wait(program, wakeup)
    if not _end_all():
        os.kill(os.getpid(), signal.SIGKILL)  # the coordinator adopts them, and looks for them when we die so
    os._exit(status)


def _end_all() -> bool:
    """Kills until no child is left, also none to bury; False when some do not end.

    A listing of /proc can miss a process whose parent ends meanwhile. The kernel's word that there is no child cannot
    be wrong: whatever is below has a parent that is our child, or was, and then it is our child itself.
    """
    until = time.monotonic() + _SWEEP_SECONDS
    while _have_children():
        if time.monotonic() > until:
            return False
        if not _outrun():
            tree.sweep(lambda: tree.descendants(os.getpid()), until - time.monotonic())
    return True


def _outrun() -> bool:
    """Kills our own children over and over; True when none is left.

    A chain whose links start the next one and end is quicker than a listing of /proc, but every link becomes our child,
    and the kernel names those at once. Their pids are theirs until we bury them, so none can be a stranger's.
    """
    for _ in range(_ROUNDS):
        for pid in tree.children(os.getpid()):
            with contextlib.suppress(PermissionError):  # it has gained another user's rights
                os.kill(pid, signal.SIGKILL)
        if not _have_children():
            return True
    return False


def _have_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _wake_on_children() -> int:
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


def _become(order: dict[str, Any]) -> NoReturn:
    """The program, in a session of its own so that `kill 0` does not reach the reaper."""
    try:
        os.setsid()
        for number in (*_IGNORED, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        for kind, value in order["limits"]:
            resource.setrlimit(kind, (value, value))
        os.chdir(order["cwd"])
        if order["stdin"] is None:
            os.dup2(1, 0)
            os.dup2(2, 1)
        else:
            os.dup2(order["stdin"], 0)
            os.close(order["stdin"])
        os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - this is the door
    except OSError as error:
        os.write(2, f"{order['argv'][0]}: {error.strerror}\n".encode())
    os._exit(127 if isinstance(sys.exc_info()[1], FileNotFoundError) else 126)


def _wait(program: int, wakeup: int) -> int:
    """The program's exit status, or 137 when the coordinator hung up first."""
    poll = select.poll()
    poll.register(_CONTROL, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    while True:
        woken = [handle for handle, _event in poll.poll()]
        status = _reap(program)
        if status is not None:
            return status
        if _CONTROL in woken:
            return 128 + signal.SIGKILL
        os.read(wakeup, 4096)


def _reap(program: int) -> int | None:
    """Buries every dead child; the program's status when it was among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == program:
            code = os.waitstatus_to_exitcode(status)
            found = code if code >= 0 else 128 - code
