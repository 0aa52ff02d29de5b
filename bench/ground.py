"""Where all of a measurement lies: folders that do not disturb each other, and that all go at the very end.

ext4 without a journal passes over inodes that were deleted within the last minute, one by one: whoever makes files in a
block group in which thousands were just removed takes up to ten times as long. So nothing is removed between
measurements, and every folder lies in a block group of its own, for git as for us.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

_GETFLAGS, _SETFLAGS, _TOPDIR = 0x80086601, 0x40086602, 0x00020000
_HANDS = 16
_TRIALS, _REMEMBERED = 16, 12  # folders; what was removed in older ones is more than a minute ago
_FLAGS = struct.Struct("@l")


class Ground:
    """A folder with numbered folders in it; leaving it removes everything."""

    def __init__(self, parent: str | None = None) -> None:
        self._parent = parent
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.close()

    def folder(self) -> Path:
        """A new one. Where ext4 lays it depends on its name: of several, the one farthest from the last ones stays."""
        self._count += 1
        tried = [Path(tempfile.mkdtemp(prefix=f"{self._count:03}-", dir=self.root)) for _ in range(_TRIALS)]
        inodes = {path: path.stat().st_ino for path in tried}
        chosen = max(tried, key=lambda path: min((abs(inodes[path] - one) for one in self._lately), default=0))
        for path in tried:
            if path != chosen:
                path.rmdir()
        self._lately.append(inodes[chosen])
        return chosen

    def at_end(self, act: Callable[[], object]) -> None:
        """What has to happen before the folders can go."""
        self._ends.callback(act)

    def clear(self) -> None:
        """Removes everything now, for a disk that has no room for it until the end."""
        self._ends.close()
        self._begin()

    def settle(self) -> None:
        """Waits until what was copied is on the disk, so that nobody's first fsync has to write it."""
        subprocess.run(["sync", "--file-system", self.root], check=False, capture_output=True)

    def _begin(self) -> None:
        self._count = 0
        self._lately: deque[int] = deque(maxlen=_REMEMBERED)
        self._ends = contextlib.ExitStack()
        self.root = Path(
            self._ends.enter_context(tempfile.TemporaryDirectory(prefix="orchestrix-bench-", dir=self._parent))
        )
        self._ends.callback(_remove_files, self.root)
        with contextlib.suppress(OSError):
            _spread(self.root)


def _remove_files(root: Path) -> None:
    """Side by side: a disk that is told of every freed block makes each removal wait for it."""
    with ThreadPoolExecutor(_HANDS) as pool:
        for folder, _, names in os.walk(root):
            pool.submit(_unlink, folder, names)


def _unlink(folder: str, names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, name))  # noqa: PTH108, PTH118 - a million times


def _spread(folder: Path) -> None:
    """As `chattr +T`: ext4 lays each folder in it into another block group; raises OSError where there is no such thing."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        (flags,) = _FLAGS.unpack(fcntl.ioctl(handle, _GETFLAGS, _FLAGS.pack(0)))
        fcntl.ioctl(handle, _SETFLAGS, _FLAGS.pack(flags | _TOPDIR))
    finally:
        os.close(handle)
