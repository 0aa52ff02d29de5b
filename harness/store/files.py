"""The files of an open database: an append to one that was taken away would be found by nobody."""

from __future__ import annotations

from pathlib import Path

from harness.model.late import dataclass

Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Files:
    """The database and its write-ahead log as they are on the disk now."""

    database: Identity | None
    log: Identity | None
    size: int

    @classmethod
    def of(cls, path: Path) -> Files:
        database, size = _stat(path)
        return cls(database, _stat(path.with_name(f"{path.name}-wal"))[0], size)

    def harm(self, now: Files) -> str:
        """What happened to these files since; empty when they are still the same. A database never shrinks by itself."""
        if (now.database, now.log) != (self.database, self.log):
            return "was removed or replaced while it was in use"
        return "was cut short while it was in use" if now.size < self.size else ""


def _stat(path: Path) -> tuple[Identity | None, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None, 0
    return (found.st_dev, found.st_ino), found.st_size
