"""Shared checkouts that git makes ahead: taken over by who needs them, in nobody's way otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.coordinators import PATIENCE_SECONDS

from harness.vcs import templates
from harness.vcs.git import Git
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout

MANY = {f"many/{folder}/f{number}": "x" * 2000 for folder in range(20) for number in range(100)}


@pytest.fixture
def workspaces() -> str:
    return "overlay"


def folders(vcs: Repository) -> list[str]:
    """What there is of shared checkouts, whole or not, by tree."""
    return sorted(path.parent.name.partition("-")[0] for path in (vcs.state_dir / "_templates").glob("*/tree"))


def test_it_is_taken_over_by_the_run(checkout: Checkout, vcs: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody makes it again, nobody looks it over again, and it is as good as any."""
    monkeypatch.setattr(templates, "_make", None)
    monkeypatch.setattr(templates, "_is_intact", None)
    start = vcs.resolve(checkout.commit("many", **MANY))
    vcs.begin(start)
    vcs.warm(RUN, start)
    workspace = vcs.open_workspace(RUN, "0", start, None)
    assert checkout.git("status", "--porcelain", cwd=workspace.path) == ""
    assert (workspace.path / "many/7/f7").read_text() == "x" * 2000
    assert folders(vcs) == [vcs.tree_of(start)]


def test_a_run_that_begins_elsewhere_is_not_held_up(checkout: Checkout, vcs: Repository) -> None:
    """What was begun is given up, also while git is still at it."""
    wanted, guessed = vcs.resolve("HEAD"), vcs.resolve(checkout.commit("many", **MANY))
    vcs.begin(guessed)
    assert (vcs.open_workspace(RUN, "0", wanted, None).path / "README.md").exists()
    vcs.forget_run(RUN)
    assert folders(vcs) == [vcs.tree_of(wanted)]


def test_what_a_dead_process_began_is_made_again(
    checkout: Checkout, open_vcs: Callable[[Path], Repository], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git dies with it, and the lock goes with git."""
    start = checkout.commit("many", **MANY)
    child = os.fork()
    if child == 0:
        dying = open_vcs(checkout.root)
        dying.begin(dying.resolve(start))
        os._exit(0 if dying._templates._begun else 1)
    assert os.waitpid(child, 0)[1] == 0
    vcs = open_vcs(checkout.root)
    monkeypatch.setattr(templates, "_PATIENCE_S", PATIENCE_SECONDS)  # a lock that stayed would raise Busy
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve(start), None)
    assert checkout.git("status", "--porcelain", cwd=workspace.path) == ""


def test_a_run_that_was_never_made_holds_nobody_up(checkout: Checkout, open_vcs: Callable[[Path], Repository]) -> None:
    """As after a plan that is not valid, in a process that goes on: the next run makes its own, or finds it made."""
    start = checkout.commit("many", **MANY)
    idle, vcs = open_vcs(checkout.root), open_vcs(checkout.root)
    idle.begin(idle.resolve(start))
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve(start), None)
    assert checkout.git("status", "--porcelain", cwd=workspace.path) == ""
    late = idle.open_workspace(RUN, "1", idle.resolve(start), None)
    assert checkout.git("status", "--porcelain", cwd=late.path) == ""


def test_half_made_ones_of_the_dead_go(checkout: Checkout, vcs: Repository) -> None:
    """Nobody might ever want that tree again."""
    half = vcs.state_dir / "_templates" / "0000-half" / "tree"
    half.mkdir(parents=True)
    vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), None)
    vcs.forget_run(RUN)
    assert folders(vcs) == [vcs.tree_of(vcs.resolve("HEAD"))]


def test_who_cannot_begin_does_not_complain(
    checkout: Checkout, vcs: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else is at it, or git cannot be started or fails: the run will say what is wrong, if it still is."""
    start = vcs.resolve("HEAD")
    lock = templates.places.taken(vcs.state_dir / "_templates" / "lock")
    assert lock is not None
    vcs.begin(start)
    assert vcs._templates._begun is None
    os.close(lock)
    monkeypatch.setattr(Git, "begin", _no_program)
    vcs.begin(start)
    assert vcs._templates._begun is None
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(checkout.write("bin/git", "#!/bin/sh\nexit 1\n").parent))
    (checkout.root / "bin/git").chmod(0o755)
    vcs.begin(start)
    monkeypatch.undo()
    assert vcs._templates._begun is not None
    vcs.open_workspace(RUN, "0", start, None)


def _no_program(*_: object, **__: object) -> None:
    raise FileNotFoundError("git")
