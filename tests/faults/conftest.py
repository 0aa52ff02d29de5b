from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.parts import missing
from support.workbench import Workbench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    """A repository with one commit, and commits of the harness at a fixed time."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    made = Workbench(tmp_path)
    made.commit({"a.txt": "one\n", "b.txt": "two\n"}, "Start")
    return made


@pytest.fixture(scope="session")
def strace() -> None:
    """Syscall faults need strace; CI has it, a desk may not."""
    if shutil.which("strace") is None:
        missing("strace is not installed")
    if subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode:
        missing("strace may not trace here")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own that may be filled and made read-only."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:  # then the test itself is called in a namespace: see tests/conftest.py
        yield folder
        return
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        missing("mounting needs privileges")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)
