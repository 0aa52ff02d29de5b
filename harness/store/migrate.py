"""The schema is the sum of its migrations: `migrations/NNNN_name.sql`, counted by `PRAGMA user_version`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from harness.errors import StoreFailed

_FOLDER = Path(__file__).parent / "migrations"


def files() -> list[Path]:
    """Every migration, in order; the n-th one leads to version n."""
    return sorted(_FOLDER.glob("[0-9]*.sql"))


def version(db: sqlite3.Connection) -> int:
    found: int = db.execute("PRAGMA user_version").fetchone()[0]
    return found


def require_current(db: sqlite3.Connection, path: Path) -> None:
    """Refuses a database that is not of this version; never changes it."""
    known, found = len(files()), version(db)
    _refuse_newer(path, found, known)
    if found < known:
        raise StoreFailed(
            f"store {path} has schema version {found}, this orchestrix reads version {known}",
            hint="the next command that writes will migrate it",
            path=str(path),
        )


def upgrade(db: sqlite3.Connection, path: Path) -> None:
    """Applies what is missing in one transaction; refuses a newer database and one that is not ours."""
    pending = files()
    if version(db) == len(pending):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        found = version(db)
        _refuse_newer(path, found, len(pending))
        if found == 0 and db.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise StoreFailed(  # noqa: TRY301 - the transaction around it must be rolled back
                f"{path} is a database of another program", hint="choose another state directory", path=str(path)
            )
        for file in pending[found:]:
            for statement in _statements(file.read_text(encoding="utf-8")):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(pending)}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _refuse_newer(path: Path, found: int, known: int) -> None:
    if found > known:
        raise StoreFailed(
            f"store {path} was written by a newer orchestrix (schema version {found}, this one knows {known})",
            hint="upgrade orchestrix",
            path=str(path),
        )


def _statements(script: str) -> Iterator[str]:
    """One statement at a time: `executescript` would commit the transaction around it."""
    lines: list[str] = []
    for line in script.splitlines(keepends=True):
        lines.append(line)
        if sqlite3.complete_statement("".join(lines)):
            yield "".join(lines)
            lines = []
