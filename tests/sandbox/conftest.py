"""Doors, specs and survivors for the tests of the process door."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.model import limits
from harness.model.process import ProcessIdentity, ProcessResult, ProcessSpec
from harness.sandbox import choice
from harness.sandbox.process import Door
from tests.sandbox.survivors import kill_marked, marked

PYTHON = sys.executable
_IN_CI = os.environ.get("CI") == "true"  # asked before any test has an environment of its own


@pytest.fixture
def bwrap() -> Door:
    problem = choice.why_not_bwrap()
    if problem and not _IN_CI:
        pytest.skip(problem)
    return choice.choose("bwrap")


@pytest.fixture(params=["bwrap", "subreaper"])
def door(request: pytest.FixtureRequest) -> Door:
    if request.param == "bwrap":
        return request.getfixturevalue("bwrap")
    return choice.choose("none")


@pytest.fixture
def marker() -> Iterator[str]:
    """A word in the argument list of every process of a test; what still has it afterwards has survived."""
    word = f"marker-{secrets.token_hex(8)}"
    yield word
    left = marked(word)
    kill_marked(word)
    assert left == []


@dataclass
class Bench:
    """A workspace, and specs for programs in it."""

    workspace: Path
    log: Path
    started: list[ProcessIdentity] = field(default_factory=list)

    def spec(self, *argv: str, **options: Any) -> ProcessSpec:
        options.setdefault("timeout_ms", 60_000)
        options.setdefault("env", {"PATH": os.environ["PATH"]})
        options.setdefault("cwd", self.workspace)
        options.setdefault("log", self.log)
        return ProcessSpec(argv=argv, **options)

    def python(self, script: str, *arguments: str, **options: Any) -> ProcessSpec:
        return self.spec(PYTHON, "-I", "-S", "-c", script, *arguments, **options)

    async def run(self, door: Door, spec: ProcessSpec) -> ProcessResult:
        return await door.run(spec, on_start=self.started.append)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return Bench(workspace, tmp_path / "step.log")


@pytest.fixture
def quick_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The grace between TERM and KILL, short."""
    monkeypatch.setattr(limits, "KILL_GRACE_MS", 200)
