"""Lock files that a killed git left behind: without them gone, no later coordinator could move the ref again.

Git holds such a lock for milliseconds, and what it writes meanwhile it has open. A lock that stays the very same file
for `PATIENCE_S`, while no process has it or what it guards open, belongs to nobody.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 2.0
_PAUSE_S = 0.05


def remove_abandoned(lock: Path, *half_written: Path) -> bool:
    """Waits for the lock to go; removes it and what was written under it if nobody does. False while it is in use."""
    first = _identity(lock)
    until = time.monotonic() + PATIENCE_S
    while first is not None and time.monotonic() < until:
        time.sleep(_PAUSE_S)
        now = _identity(lock)
        if now != first:
            return now is None
    if first is None:
        return True
    if _are_open(lock, *half_written):
        return False
    for path in (*half_written, lock):
        path.unlink(missing_ok=True)
    return True


def _identity(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _are_open(*paths: Path) -> bool:
    """Whether a process that can be looked at has one of these open."""
    wanted = {found[:2] for path in paths if (found := _identity(path))}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            for handle in (process / "fd").iterdir():
                with suppress(OSError):
                    there = handle.stat()
                    if (there.st_dev, there.st_ino) in wanted:
                        return True
    return False
