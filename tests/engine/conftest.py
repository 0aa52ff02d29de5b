from __future__ import annotations

from pathlib import Path

import pytest
from support.workbench import Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """A repository with a few files and one commit."""
    made = Workbench(tmp_path)
    made.commit({"a.txt": "one\ntwo\nthree\n", "src/lib.py": "VALUE = 1\n", "README.md": "# Sample\n"}, "Start")
    return made
