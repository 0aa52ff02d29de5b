"""Decides when free disk space fell so far that trash must be emptied now."""

from __future__ import annotations

import os
from pathlib import Path

from harness.model import limits


class DiskSpace:
    """The file system that holds a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bytes = self._files = 0

    def look(self) -> None:
        """Remembers what is free now; a folder that cannot be looked at has no room."""
        self._bytes, self._files = self._free()

    def is_low(self) -> bool:
        """Whether much less is free than when one looked, measured by the limits and by what there was."""
        free, files = self._free()
        most = min(limits.TRASH_BYTES, self._bytes // limits.TRASH_SHARE)
        return free <= self._bytes - most or files < self._files - limits.TRASH_FILES

    def _free(self) -> tuple[int, int]:
        try:
            found = os.statvfs(self._folder)
        except OSError:
            return 0, 0
        return found.f_bavail * found.f_frsize, found.f_ffree
