from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.checker import check
from support.workbench import Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    """A repository with a few files and one commit; what the test's runs left there must hold every promise."""
    made = Workbench(tmp_path)
    made.commit({"a.txt": "one\ntwo\nthree\n", "src/lib.py": "VALUE = 1\n", "README.md": "# Sample\n"}, "Start")
    yield made
    if (made.files / ".orchestrix/local/state.db").is_file():
        assert check(made.files) == []
