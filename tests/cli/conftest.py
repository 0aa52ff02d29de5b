from __future__ import annotations

from pathlib import Path

import pytest
from support.workbench import Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """A repository with one commit."""
    made = Workbench(tmp_path)
    made.commit({"a.txt": "one\n"}, "Start")
    return made
