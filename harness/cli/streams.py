"""Stdout and stderr of this process: a write never fails, and what stdout lost is known at the end.

Both are opened anew on their descriptors, so that buffering is the same with and without PYTHONUNBUFFERED, and an error of
the descriptor shows at one place: neither in the middle of a command nor in the interpreter's last flush.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys


class Outlet(io.FileIO):
    """A descriptor that drops everything after its first error and keeps that error."""

    lost: OSError | None = None
    only_progress = False  # what is lost here is no result

    def write(self, data: object, /) -> int:
        """Takes all data or a part of it, as any raw stream; a reader that is slow is waited for."""
        while self.lost is None:
            try:
                written = super().write(data)  # type: ignore[arg-type] # any bytes-like object, as for FileIO
            except OSError as error:
                self.lost = error
                break
            if written is not None:
                return written
            _wait_for_room(self.fileno())  # the caller made the descriptor non-blocking
        return memoryview(data).nbytes  # type: ignore[arg-type] # as above


def install() -> None:
    """Gives this process its streams; call it once, before anything is written."""
    _open_missing()
    for name in ("stdout", "stderr"):
        old = getattr(sys, name)
        if not isinstance(old, io.TextIOWrapper):
            continue
        old.flush()
        outlet = Outlet(old.fileno(), "w", closefd=False)
        new = io.TextIOWrapper(
            io.BufferedWriter(outlet),
            encoding=old.encoding,
            errors="backslashreplace",  # no character is refused
            line_buffering=name == "stderr" or outlet.isatty(),
        )
        setattr(sys, name, new)


def lost() -> OSError | None:
    """Why a result on stdout did not arrive; a reader that went away (`| head`) has what it wanted."""
    outlet = _outlet()
    if outlet is None or outlet.lost is None or outlet.only_progress or outlet.lost.errno == errno.EPIPE:
        return None
    return outlet.lost


def is_unread() -> bool:
    """Whether nothing that is written to stdout arrives any more."""
    outlet = _outlet()
    return outlet is not None and outlet.lost is not None


def carry_progress() -> None:
    """Stdout tells how a run goes: what it loses from now on is no error."""
    outlet = _outlet()
    if outlet is not None:
        outlet.only_progress = True


def _outlet() -> Outlet | None:
    """Stdout's descriptor; None where a program or a test put a stream of its own there."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, Outlet) else None


def _open_missing() -> None:
    """One that the caller closed becomes /dev/null, or its number would become the database's; children inherit it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _wait_for_room(number: int) -> None:
    poll = select.poll()
    poll.register(number, select.POLLOUT)
    poll.poll()
