"""A machine without space or descriptors judges nothing: what git or libgit2 could not read or write is an error."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.errors import MACHINE_FAULTS, GitFailed
from harness.vcs import git, survey
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout

# Does what git does, less one thing: the files of this name cannot be opened for want of descriptors.
_LAME = """#!/bin/sh
"{real}" "$@"
code=$?
case " $* " in *" {verb} "*) echo 'error: open("lost.txt"): Too many open files' >&2; exit {exit};; esac
exit $code
"""


@contextmanager
def _no_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir()) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    taken = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for handle in taken:
            os.close(handle)


@pytest.mark.parametrize("status", [0, 1])
def test_a_snapshot_that_git_could_not_take_whole_is_no_snapshot(
    checkout: Checkout, vcs: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """`git add --ignore-errors` goes on after a file that it could not open: the work in it would be lost in silence."""
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), None)
    (workspace.path / "lost.txt").write_text("work\n")
    os.mkfifo(workspace.path / "pipe")  # what is not plain is left to git
    real = checkout.git("--exec-path") + "/git"
    lame = tmp_path / "bin" / "git"
    lame.parent.mkdir()
    lame.write_text(_LAME.format(real=real, verb="add", exit=status))
    lame.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{lame.parent}{os.pathsep}{os.environ['PATH']}")
        with pytest.raises(GitFailed, match=r'git add failed: error: open\("lost\.txt"\): Too many open files'):
            vcs.snapshot(workspace, "work", 1)
    assert [change.path for change in vcs.snapshot(workspace, "work", 1).changes] == ["lost.txt"]


def test_objects_and_refs_that_cannot_be_read_are_not_absent(checkout: Checkout, vcs: Repository) -> None:
    """Without a free descriptor every question ends in an error, none in `there is no such thing`."""
    main = vcs.head_branch()
    head = vcs.resolve("HEAD")
    other = checkout.commit("other")
    with _no_descriptors():
        for question in (
            lambda: vcs.read_ref(main),
            lambda: vcs.refs_under("refs/"),
            lambda: vcs.tree_of(other),
            lambda: vcs.commit(vcs.tree_of(head), [head], "new", 1),
            lambda: survey.tree(checkout.root),
        ):
            with pytest.raises((GitFailed, OSError)):
                question()
    assert vcs.read_ref(main) == other


@pytest.mark.parametrize("number", sorted(MACHINE_FAULTS))
def test_a_fault_of_the_machine_is_known_by_the_end_of_a_line(number: int) -> None:
    """A file name that merely holds the words is not one."""
    words = os.strerror(number).encode()
    assert git.Answer(0, b"", b"warning: unable to access 'x': " + words + b"\n").machine_fault
    assert not git.Answer(0, b"", b"warning: '" + words + b"' has type changed\n").machine_fault


def test_git_that_is_ended_for_its_time_leaves_no_unfinished_objects(checkout: Checkout) -> None:
    """What it was writing in the user's object store goes with it; that of another git stays."""
    with (checkout.root / "endless").open("wb") as file:
        file.truncate(1 << 40)
    theirs = checkout.root / ".git/objects/pack/tmp_pack_theirs"
    theirs.touch()
    door = git.Git(checkout.root / ".git", checkout.root)
    with pytest.raises(GitFailed, match="did not finish in time"), git.within(2000):
        door.run("-c", "core.bigFileThreshold=1m", "add", "endless")
    assert list((checkout.root / ".git/objects").rglob("tmp_*")) == [theirs]
