"""How much memory and disk a program and all that it starts take at their peak, by looking again and again."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PAUSE_SECONDS = 0.01
_PAGE = os.sysconf("SC_PAGE_SIZE")
_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Footprint:
    """Peaks in bytes: resident memory of the first process, the sum over its tree, and what a folder grew by."""

    first: int
    tree: int
    disk: int


def of(command: Sequence[str | Path], cwd: Path, env: Mapping[str, str], folder: Path) -> Footprint:
    """Runs the program; looking takes time, so this run is not timed; raises RuntimeError when it fails.

    Pages that processes share count once for each of them. A folder of many files is walked slowly: a peak shorter than a walk is missed.
    """
    before = size(folder)
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, cwd=cwd, env=env, stdout=said, stderr=said)
        memory = _Peak(lambda: _memory(process.pid))
        disk = _Peak(lambda: (size(folder),))
        with memory.watched(), disk.watched():
            code = process.wait()
        if code:
            said.seek(0)
            raise RuntimeError(f"{command[:3]}: exit {code}\n{said.read()[-2000:]}")
    first, tree = memory.highest
    return Footprint(first, tree, max(0, max(disk.highest[0], size(folder)) - before))


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


class _Peak:
    """The highest values of a measurement that a thread repeats."""

    def __init__(self, measure: Callable[[], tuple[int, ...]]) -> None:
        self._measure = measure
        self._over = threading.Event()
        self.highest = measure()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_PAUSE_SECONDS):
            self.highest = tuple(map(max, self.highest, self._measure()))


def _memory(pid: int) -> tuple[int, int]:
    """Resident bytes of a process and of its whole tree; what has ended in between counts as nothing."""
    first = _resident(pid)
    total = first
    waiting = _children(pid)
    while waiting:
        child = waiting.pop()
        total += _resident(child)
        waiting += _children(child)
    return first, total


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
