"""How much memory and disk a program and all that it starts take at their peak, by looking again and again."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

# Ten looks a second take less than a hundredth of a core, so that timed runs have them too.
SELDOM_S, OFTEN_S = 0.1, 0.01
_PAGE = os.sysconf("SC_PAGE_SIZE")
_BLOCK = 512
_HIGHEST = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Footprint:
    """Peaks in bytes: resident memory of the first process, the sum over its tree, and what a folder grew by if looked at."""

    first: int
    tree: int
    disk: int | None = None

    def peaks(self, other: Footprint) -> Footprint:
        """Of both; the sum was never less than the first alone, whose peak nobody misses."""
        grown = [disk for disk in (self.disk, other.disk) if disk is not None]
        first = max(self.first, other.first)
        return Footprint(first, max(self.tree, other.tree, first), max(grown, default=None))


class Watcher:
    """Looks at a program until it ends; with a folder also at what that grows by, which takes processor time.

    The kernel itself remembers the peak of the first process. In the sum, pages that processes share count once for each.
    A peak of the sum that is shorter than the pause is missed, and one of the disk that is shorter than a walk through it.
    """

    def __init__(self, pause: float, folder: Path | None = None) -> None:
        self._pause = pause
        self._folder = folder
        self._before = size(folder) if folder else 0
        self._lock = threading.Lock()
        self.seen = Footprint(0, 0)

    @contextlib.contextmanager
    def watch(self, pid: int) -> Iterator[None]:
        over = threading.Event()
        looks = [lambda: _memory(pid), *([self._grown] if self._folder else [])]
        threads = [threading.Thread(target=self._repeat, args=(look, over)) for look in looks]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def _grown(self) -> Footprint:
        return Footprint(0, 0, max(0, size(self._folder) - self._before) if self._folder else None)

    def _repeat(self, look: Callable[[], Footprint], over: threading.Event) -> None:
        """At least once, and once more at the end, when memory is gone but files are not."""
        ended = False
        while not ended:
            ended = over.is_set()
            seen = look()
            with self._lock:
                self.seen = self.seen.peaks(seen)
            over.wait(self._pause)


def size(folder: Path) -> int:
    """Bytes on disk below a folder; a file with several names counts once."""
    total = 0
    seen: set[int] = set()
    waiting = [str(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if found.st_ino not in seen:
                        seen.add(found.st_ino)
                        total += found.st_blocks * _BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total


def _memory(pid: int) -> Footprint:
    """Of a process and of its whole tree; what has ended in between counts as nothing."""
    total = _resident(pid)
    waiting = _children(pid)
    while waiting:
        child = waiting.pop()
        total += _resident(child)
        waiting += _children(child)
    return Footprint(_highest(pid), total)


def _highest(pid: int) -> int:
    """Of this program alone: `ru_maxrss` would count the larger of its children and whoever started it."""
    with contextlib.suppress(OSError):
        if found := _HIGHEST.search(Path(f"/proc/{pid}/status").read_text()):
            return int(found[1]) * 1024
    return 0


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _children(pid: int) -> list[int]:
    """Each thread has children of its own."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found += map(int, (thread / "children").read_text().split())
    return found
