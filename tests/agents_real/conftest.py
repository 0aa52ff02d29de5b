"""The installed programs, a scripted model, and a repository whose plans name the programs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.agents import profile as profiles
from harness.agents.profile import Profile, filled
from harness.agents.profile_table import ProfileTable
from tests.support.model_server import ModelServer
from tests.support.workbench import Workbench

# Asked before any test has an environment of its own.
_IN_CI = os.environ.get("CI") == "true"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
PROGRAMS = Path(os.environ.get("ORCHESTRIX_PROGRAMS") or _CACHE / "orchestrix-agents")
UNLISTED = Path(__file__).parent / "pi.toml"
NAMES = tuple(ProfileTable().files(()))


def load(name: str) -> Profile:
    path = UNLISTED if name == UNLISTED.stem else ProfileTable().files(())[name]
    return profiles.load(path)


@dataclass
class Real:
    """One real program: installed, pointed at a scripted model, usable from plans."""

    profile: Profile
    bench: Workbench
    server: ModelServer
    patch: pytest.MonkeyPatch

    def point_at(self, scenario: str) -> None:
        """What a user would have in the environment."""
        for name, value in self.profile.check.environment.items():
            self.patch.setenv(name, filled(value, {"url": self.server.url(scenario)}))

    def report(self, step: int) -> dict[str, Any]:
        return self.bench.call("report", "latest", "--step", str(step), "--json").data["report"]


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pinned programs on PATH; where they are missing the suite says how to get them."""
    if not (PROGRAMS / ".stamp").exists():
        message = f"the programs are not installed in {PROGRAMS}; run .ci/agents"
        assert not _IN_CI, message
        pytest.skip(message)
    monkeypatch.setenv("PATH", f"{PROGRAMS / 'bin'}:{PROGRAMS / 'node_modules/.bin'}:{os.environ['PATH']}")
    return PROGRAMS


@pytest.fixture
def state_home(programs: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Out of /tmp: some programs distrust files below a directory that everybody may write."""
    folder = programs / "state" / f"{os.getpid()}-{abs(hash(request.node.name))}"
    folder.mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("ORCHESTRIX_STATE_HOME", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def real(request: pytest.FixtureRequest, tmp_path: Path, state_home: Path, server, monkeypatch) -> Real:
    """The program that the test is parametrised with, in a repository with settings for it."""
    known = load(request.param)
    for name in (*known.environment.variables, *known.environment.secrets):
        monkeypatch.delenv(name, raising=False)
    bench = Workbench(tmp_path)
    folder = bench.files / ".orchestrix"
    folder.mkdir()
    (folder / "config.toml").write_text(f'[agents.{known.name}]\nmodel = "{known.check.model}"\n')
    if request.param == UNLISTED.stem:
        (folder / "agents").mkdir()
        shutil.copy(UNLISTED, folder / "agents")
    bench.commit({"README.md": "start\n"}, "Start")
    return Real(known, bench, server, monkeypatch)
