"""SQL is written in `sql/*.sql`; each query there has a name."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_MARK = "-- name: "


@cache
def load() -> dict[str, str]:
    """Every named query of every file; a name stands for one query only."""
    found: dict[str, str] = {}
    for file in sorted((Path(__file__).parent / "sql").glob("*.sql")):
        for block in file.read_text(encoding="utf-8").split(_MARK)[1:]:
            name, _, text = block.partition("\n")
            if name in found:
                raise ValueError(f"{file.name}: a second query is called {name}")
            found[name] = text.strip()
    return found
