"""All of the statements inside, or none of them."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from types import TracebackType
from typing import Any


class Transaction:
    """Begins, then commits, or rolls back after an error.

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
