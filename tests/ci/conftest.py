from __future__ import annotations

from pathlib import Path

import pytest
from support.workbench import Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """A repository with one file and one commit."""
    made = Workbench(tmp_path)
    made.commit({"a.txt": "one\ntwo\nthree\n"}, "Start")
    return made


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of a GitHub runner; returns the folder of its command files."""
    folder = tmp_path / "runner"
    folder.mkdir()
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_token")
    monkeypatch.setenv("ACTIONS_RUNTIME_TOKEN", "runtime-token")
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "id-token")
    monkeypatch.setenv("RUNNER_TEMP", str(folder))
    for name in ("OUTPUT", "ENV", "PATH", "STATE", "STEP_SUMMARY"):
        (folder / name.lower()).write_text("")
        monkeypatch.setenv(f"GITHUB_{name}", str(folder / name.lower()))
    return folder
