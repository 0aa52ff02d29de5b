"""The files of an open database: an append to one that was taken away would be found by nobody."""

from __future__ import annotations

import os
from typing import NamedTuple

Identity = tuple[int, int]


class Files(NamedTuple):
    """The database and its write-ahead log as they are on the disk now."""

    database: Identity | None
    log: Identity | None
    size: int

    @classmethod
    def of(cls, database: str) -> Files:
        identity, size = _stat(database)
        return cls(identity, _stat(f"{database}-wal")[0], size)

    def harm(self, now: Files) -> str:
        """What happened to these files since; empty when they are still the same. A database never shrinks by itself."""
        if (now.database, now.log) != (self.database, self.log):
            return "was removed or replaced while it was in use"
        return "was cut short while it was in use" if now.size < self.size else ""


def _stat(path: str) -> tuple[Identity | None, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - twice for each append, where pathlib costs as much as the system call
    except FileNotFoundError:
        return None, 0
    return (found.st_dev, found.st_ino), found.st_size
