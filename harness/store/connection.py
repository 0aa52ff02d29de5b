"""A database file: opening it for writing or reading, its transactions, and whether it is still the same file."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NamedTuple

from harness.errors import NotFound
from harness.model import limits
from harness.store import migrate

Identity = tuple[int, int]  # of a file on its disk


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Creates and migrates as needed; every commit is on the disk when it returns."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _make_private(path)
    db = _connect(path, "rwc")
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        migrate.upgrade(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _make_private(path: Path) -> None:
    """The database is for this user alone, whatever the umask; SQLite gives the files beside it the same mode.

    One that exists is never opened here: closing it would end the locks that this process has on it.
    """
    with suppress(OSError):  # SQLite tells why it cannot be opened
        if not path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            if file.stat().st_mode & 0o077:
                file.chmod(0o600)


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Reads, and refuses to write; raises NotFound when there is no database.

    A write-ahead log cannot be read where its shared-memory file can neither be found nor made (a read-only medium):
    then a private copy is read.
    """
    if not path.is_file():
        raise NotFound(f"no store at {path}", hint="no run was started here yet", path=str(path))
    db = _connect(path, "ro")
    try:
        migrate.require_current(db, path)
    except sqlite3.OperationalError as error:
        db.close()
        if error.sqlite_errorcode != sqlite3.SQLITE_CANTOPEN:
            raise
        return _copied(path)
    except BaseException:
        db.close()
        raise
    return db


def _copied(path: Path) -> sqlite3.Connection:
    """The database in memory, where nothing is left to clean up."""
    with TemporaryDirectory(prefix="orchestrix-store-") as folder:
        copy = Path(folder, path.name)
        for suffix in ("", "-wal"):
            source = path.with_name(path.name + suffix)
            if source.exists():
                shutil.copyfile(source, copy.with_name(copy.name + suffix))
        with closing(_connect(copy, "ro")) as db:
            migrate.require_current(db, path)
            memory = _connect(Path(":memory:"), "memory")
            db.backup(memory)
    memory.execute("PRAGMA query_only = ON")
    return memory


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=limits.STORE_BUSY_MS / 1_000,
        isolation_level=None,
        check_same_thread=False,
    )
    db.row_factory = sqlite3.Row
    return db


class Transaction:
    """All of the statements inside, or none of them: begins, then commits, or rolls back after an error.

    A failed COMMIT may have been done: what was `folded` from the log before it is no longer trusted. A class, as a
    generator would cost an append more than what is done here.
    """

    def __init__(self, db: sqlite3.Connection, begin: str, folded: dict[str, Any]) -> None:
        self._db = db
        self._begin = begin
        self._folded = folded

    def __enter__(self) -> None:
        self._db.execute(self._begin)

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._undo()
            return
        try:
            self._db.execute("COMMIT")
        except BaseException:
            self._undo()
            raise

    def _undo(self) -> None:
        self._folded.clear()
        with suppress(sqlite3.Error):
            self._db.execute("ROLLBACK")


class Files(NamedTuple):
    """The database and its write-ahead log as they are on the disk now: nothing finds an append to a file that was taken away."""

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
