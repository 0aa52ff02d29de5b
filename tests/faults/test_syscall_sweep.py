"""System calls of the coordinator and of its git programs fail or kill, one after the other: nothing is harmed.

`pytest -m sweep tests/faults/test_syscall_sweep.py` plays more than 500 faults; a handful runs with every change.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import points
from faults.points import Fault
from faults.stage import Launcher, Stage, template

_SHARES = 8
_STRIDE = {"auto": 2, "checkout": 3}  # overlays have fewer places
_QUICK = 5
_FLOOR = {"auto": 100, "checkout": 500}  # overlays ask git for little


class Rig:
    """The template, an undisturbed result to compare with, and the places where a fault can be put."""

    def __init__(self, folder: Path, launcher: Launcher, workspace: str) -> None:
        self._folder = folder
        self._launcher = launcher
        self.workspace = workspace
        self._template = template(folder / "template")
        undisturbed = self.stage("undisturbed")
        assert undisturbed.call(*undisturbed.run_arguments).code == 0
        self._wanted = undisturbed.tree()
        self.coordinator = points.in_coordinator(self.stage("coordinator"))
        self.git = points.in_git(self.stage("git"))

    def stage(self, name: str) -> Stage:
        return Stage.copy(self._template, self._folder / name, self._launcher, self.workspace)

    def play(self, faults: list[Fault]) -> list[str]:
        """What these faults broke."""
        found = []
        for number, fault in enumerate(faults):
            stage = self.stage(f"fault-{number}")
            problems = stage.problems(fault.play(stage), self._wanted)
            if problems:
                found.append(f"{fault}: {problems}")
            else:
                shutil.rmtree(stage.root)
        return found


@pytest.fixture(params=["auto", "checkout"])
def rig(strace: None, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Rig]:
    """Once with the quickest kind of workspace, which asks git for little, and once with the one that git makes."""
    with Launcher() as launcher:
        yield Rig(tmp_path, launcher, request.param)


def _spread(faults: list[Fault], count: int) -> list[Fault]:
    return faults[len(faults) // (2 * count) :: len(faults) // count][:count]


def test_a_sample_of_failing_system_calls_harms_nothing(rig: Rig) -> None:
    """The quick subset: a few places in the coordinator and a few in its git programs."""
    assert len(rig.coordinator) > 500
    assert len(rig.git) > _FLOOR[rig.workspace], len(rig.git)
    assert rig.play([*_spread(rig.coordinator, _QUICK), *_spread(rig.git, _QUICK)]) == []


@pytest.mark.sweep
@pytest.mark.parametrize("share", range(_SHARES))
def test_failing_system_calls_harm_nothing(rig: Rig, share: int) -> None:
    """Every second or third place, in shares that can be played side by side; together more than 500 faults."""
    stride = _STRIDE[rig.workspace]
    faults = [*rig.coordinator, *rig.git][share * stride :: _SHARES * stride]
    assert len(faults) * _SHARES > 500
    assert rig.play(faults) == []
