"""Every test runs with a home, a git configuration and a clock of its own; nothing of the machine leaks in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
# The same examples everywhere, and no example that fails because the machine was busy.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that mounts runs as the root of a namespace of its own where the suite runs as another user."""
    if os.geteuid() == 0 or "small_disk" not in pyfuncitem.fixturenames:
        return None
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", pyfuncitem.nodeid]
    temporary = f"--basetemp={pyfuncitem.funcargs['tmp_path']}/within"
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", *command, temporary],
        cwd=pyfuncitem.config.rootpath,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return True


@pytest.fixture(autouse=True)
def hermetic(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh HOME, XDG directories below it, and no variable that steers git, CI or the harness."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("GIT_", "ORCHESTRIX_", "GITHUB_", "XDG_")) or name in {"CI", "SOURCE_DATE_EPOCH"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return home
