"""Both stores, opened fresh and closed after the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.ports import Store
from harness.store.memory import MemoryStore
from harness.store.sqlite import SqliteStore
from tests.store.samples import HandClock


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "local" / "state.db"


@pytest.fixture
def sqlite_store(database: Path, clock: HandClock) -> Iterator[SqliteStore]:
    store = SqliteStore(database, clock)
    yield store
    store.close()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, clock: HandClock) -> Store:
    """Every claim that uses this fixture is made about each implementation."""
    if request.param == "memory":
        return MemoryStore(clock)
    return request.getfixturevalue("sqlite_store")
