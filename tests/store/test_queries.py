"""SQL lives in named queries, and each of them fits the schema."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from harness.store import migrate, queries


@pytest.mark.parametrize("name", sorted(queries.load()))
def test_every_named_query_compiles(name):
    """The database accepts each query against the migrated schema."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate.upgrade(db, Path("memory"))
    sql = queries.load()[name]
    db.execute(f"EXPLAIN {sql}", dict.fromkeys(re.findall(r":(\w+)", sql)))
    db.close()


def test_every_named_query_is_used():
    """A query that nothing calls is dead code."""
    source = (Path(queries.__file__).parent / "sqlite.py").read_text(encoding="utf-8")
    assert [name for name in queries.load() if f'"{name}"' not in source] == []


def test_the_store_is_cheap_to_import():
    """Quick commands open a store: neither pydantic nor asyncio comes along."""
    code = "import sys, harness.store.sqlite; print(sorted({'pydantic', 'asyncio', 'subprocess'} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
