"""What a failing database means to a caller: the cause in words, and what to do next."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.errors import StoreCorrupt, StoreFailed

_PRIMARY = 0xFF  # an extended result code carries the primary one in its low byte
_DAMAGED = "keep the file for inspection, then restore a copy or inspect the run's record"
_CAUSES: dict[int, tuple[type[StoreFailed], str, str]] = {
    sqlite3.SQLITE_FULL: (StoreFailed, "the disk is full", "free some space, then resume the run"),
    sqlite3.SQLITE_IOERR: (StoreFailed, "reading or writing it failed", "check the disk, then resume the run"),
    sqlite3.SQLITE_BUSY: (StoreFailed, "another process keeps it locked", "end that process, then resume the run"),
    sqlite3.SQLITE_LOCKED: (StoreFailed, "another process keeps it locked", "end that process, then resume the run"),
    sqlite3.SQLITE_READONLY: (StoreFailed, "it is read-only", "make file and directory writable, then resume the run"),
    sqlite3.SQLITE_PERM: (StoreFailed, "access is denied", "make file and directory accessible, then try again"),
    sqlite3.SQLITE_CANTOPEN: (StoreFailed, "it cannot be opened", "check that path and permissions are right"),
    sqlite3.SQLITE_CORRUPT: (StoreCorrupt, "it is damaged", _DAMAGED),
    sqlite3.SQLITE_NOTADB: (StoreCorrupt, "it is not a database", _DAMAGED),
    sqlite3.SQLITE_CONSTRAINT: (StoreCorrupt, "its rows do not fit its log", "run `orchestrix audit`"),
}
_UNDECODABLE = "Could not decode to UTF-8"


def from_sqlite(path: Path, error: sqlite3.Error) -> StoreFailed:
    """The error of this tree that says what the database's own error means."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and str(error).startswith(_UNDECODABLE):
        code = sqlite3.SQLITE_CORRUPT
    unknown = (StoreFailed, "the database refused", "nothing acted after it; try again")
    kind, cause, hint = unknown if code is None else _CAUSES.get(code & _PRIMARY, unknown)
    return kind(f"store {path}: {cause} ({error})", hint=hint, path=str(path))


class Translated:
    """Around what may fail: turns every error of the database and of the file system into StoreFailed or StoreCorrupt."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if isinstance(error, sqlite3.Error):
            raise from_sqlite(self._path, error) from error
        if isinstance(error, UnicodeDecodeError):
            raise StoreCorrupt(
                f"store {self._path}: it is damaged ({error})", hint=_DAMAGED, path=str(self._path)
            ) from error
        if isinstance(error, OSError):
            raise StoreFailed(
                f"store {self._path}: {error.strerror or error}",
                hint="check path, permissions and free space",
                path=str(self._path),
            ) from error


def parse_json(text: Any, where: str) -> Any:
    """The value of a JSON column; raises StoreCorrupt, naming the place."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreCorrupt(f"{where} is not JSON ({error})", hint="run `orchestrix audit`") from error
