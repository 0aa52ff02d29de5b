"""Snapshots of plain checkouts from what changed: the tree that git would give, and hardly ever is git asked."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.model.ids import TaskId, work_branch
from harness.vcs import snapshot
from harness.vcs.ignored import Ignored
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout, vouch_for_all
from tests.vcs.test_layered import NAMES, RULES, edit

BRANCH = work_branch(RUN, TaskId("0"))


def by_git(vcs: Repository, name: str) -> str:
    """The snapshot of the same workspace, taken by git over all of its files."""
    place, workspace = vcs._place(RUN, name), vcs.find_workspace(RUN, name)
    assert workspace is not None
    return snapshot.take(vcs._private_of(RUN).git(place.tree), workspace.private_index, [], ()).tree


def from_changes(vcs: Repository, name: str, start: str) -> str | None:
    """The snapshot by what changed, or None where git has to be asked."""
    place = vcs._place(RUN, name)
    return vcs._compared.tree(place, vcs._private_of(RUN), vcs.tree_of(vcs.resolve(start)), (), Ignored())


@pytest.mark.parametrize("rules", RULES)
def test_what_changed_gives_the_tree_that_git_gives(
    checkout: Checkout, open_vcs: Callable[[Path], Repository], rules: str
) -> None:
    """Generated edits, right after the checkout, under ignore rules and attributes."""
    for name in NAMES[:7]:
        checkout.write(name, b"one\r\n" if name.endswith("e.log") else b"one\ntwo\n")
    checkout.git("add", "--force", "--all")
    checkout.git("commit", "--quiet", "--message", "files")
    start = checkout.commit("rules", **RULES[rules])
    vcs, decided = open_vcs(checkout.root), 0
    for seed in range(24):
        rng, name = random.Random(f"{rules}-{seed}"), str(seed)
        workspace = vcs.open_workspace(RUN, name, vcs.resolve(start), None)
        for _ in range(rng.randrange(1, 7)):
            edit(rng, workspace.path)
        tree = from_changes(vcs, name, start)
        assert tree in (None, by_git(vcs, name)), f"seed {rules}-{seed}"
        decided += tree is not None
        vcs.retire_workspace(RUN, name)
    assert decided >= 20


def test_no_edit_hides_behind_its_size_and_times(checkout: Checkout, vcs: Repository) -> None:
    """As long as before, at once, with the old time set again, in place and by a new file of the same name."""
    names = [f"f{n}" for n in range(200)]
    start = checkout.commit("many", **dict.fromkeys(names, "old\n"))
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve(start), BRANCH)
    for number, name in enumerate(names):
        path = workspace.path / name
        before = path.stat()
        if number % 2:
            path.unlink()
        path.write_text("new\n")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [change.path for change in vcs.snapshot(workspace, "s", 1).changes] == sorted(names)
    assert from_changes(vcs, "0", start) is not None


def test_what_is_not_older_than_the_index_is_read(checkout: Checkout, vcs: Repository) -> None:
    """Its times cannot vouch for it: an edit in the same moment would leave them as they are."""
    start = vcs.resolve("HEAD")
    workspace = vcs.open_workspace(RUN, "0", start, BRANCH)
    path, index = workspace.path / "README.md", workspace.private_index
    path.write_text("HELLO\n")
    edited = path.stat()
    raw = bytearray(index.read_bytes())
    at = raw.index(b"README.md\0") - 62
    stamps = [part for stamp in (edited.st_ctime_ns, edited.st_mtime_ns) for part in divmod(stamp, 1_000_000_000)]
    raw[at : at + 16] = struct.pack(">4I", *stamps)
    index.write_bytes(raw)
    os.utime(index, ns=(edited.st_ctime_ns, edited.st_ctime_ns))
    tree = from_changes(vcs, "0", start)
    assert tree is not None
    assert [change.path for change in vcs._objects.changes(start, tree)] == ["README.md"]


def test_what_nobody_touched_is_not_opened(checkout: Checkout, vcs: Repository) -> None:
    """The time of its last reading stays what it was."""
    names = [f"f{n}" for n in range(50)]
    start = checkout.commit("many", **dict.fromkeys(names, "old\n"))
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve(start), BRANCH)
    vouch_for_all(workspace)
    (workspace.path / "f7").write_text("changed\n")
    held = [os.open(workspace.path / name, os.O_RDONLY) for name in ("f7", "f8")]
    before = [os.fstat(handle).st_atime_ns for handle in held]
    assert [change.path for change in vcs.snapshot(workspace, "s", 1).changes] == ["f7"]
    assert os.fstat(held[1]).st_atime_ns == before[1]
    for handle in held:
        os.close(handle)


def test_an_index_that_is_no_plain_one_is_left_to_git(checkout: Checkout, vcs: Repository) -> None:
    """Cut short, of another version, or none."""
    start = vcs.resolve("HEAD")
    workspace = vcs.open_workspace(RUN, "0", start, BRANCH)
    whole = workspace.private_index.read_bytes()
    for raw in (whole[:100], whole[:7] + b"\4" + whole[8:], b""):
        workspace.private_index.write_bytes(raw)
        assert from_changes(vcs, "0", start) is None
    workspace.private_index.unlink()
    assert from_changes(vcs, "0", start) is None


def test_a_very_deep_file_is_left_to_git(checkout: Checkout, vcs: Repository) -> None:
    """And it is in the snapshot all the same."""
    start = vcs.resolve("HEAD")
    workspace = vcs.open_workspace(RUN, "0", start, BRANCH)
    deep = "/".join("d" * 400)
    (workspace.path / deep).mkdir(parents=True)
    (workspace.path / deep / "file").write_text("x\n")
    assert from_changes(vcs, "0", start) is None
    assert [change.path for change in vcs.snapshot(workspace, "s", 1).changes] == [f"{deep}/file"]
