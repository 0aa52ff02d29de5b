"""Commits, trees and changes by objects alone."""

from __future__ import annotations

import subprocess
import sys

import pygit2
import pytest

from harness.errors import GitFailed, UsageError
from harness.model import limits
from harness.model.changes import Change, Kind
from harness.model.ids import CommitId, TreeId
from harness.vcs.repository import Repository
from tests.vcs.conftest import Checkout


def test_a_commit_carries_the_users_identity_and_a_fixed_clock(checkout: Checkout, vcs: Repository) -> None:
    """Name and address are the user's; the zone is UTC; the same arguments give the same id."""
    checkout.git("config", "user.name", "Ada <evil> Lovelace\x07")
    checkout.git("config", "user.email", "ada@example.org")
    start = vcs.resolve("HEAD")
    made = vcs.commit(vcs.tree_of(start), [start], "subject\n\nbody: ünï \udcff\n\n", 86400)
    assert made == vcs.commit(vcs.tree_of(start), [start], "subject\n\nbody: ünï \udcff", 86400)
    assert checkout.git("cat-file", "commit", made).splitlines()[2:] == [
        "author Ada evil Lovelace <ada@example.org> 86400 +0000",
        "committer Ada evil Lovelace <ada@example.org> 86400 +0000",
        "",
        "subject",
        "",
        "body: ünï \\udcff",
    ]


@pytest.mark.parametrize("name", ["Ada", " Ada, Jr. ", "'A'", "ünï", ".a."])
def test_a_commit_is_the_one_that_libgit2_would_make(checkout: Checkout, vcs: Repository, name: str) -> None:
    """Written here, because libgit2 reads the whole tree again first; what surrounds a name goes as it does there."""
    start = vcs.resolve("HEAD")
    tree = vcs.tree_of(start)
    for parents in ([], [start], [start, start]):
        made = vcs._objects.commit(tree, parents, "one\n\ntwo", when=7, identity=(name, "a@b."))
        who = pygit2.Signature(name, "a@b.", 7, 0, "utf-8")
        by_library = pygit2.Repository(checkout.root).create_commit(None, who, who, "one\n\ntwo\n", tree, parents)
        assert made == str(by_library)


def test_a_commit_of_nothing_is_refused(vcs: Repository) -> None:
    """Neither its tree nor a parent may be missing."""
    start, nothing = vcs.resolve("HEAD"), CommitId("1" * 40)
    with pytest.raises(GitFailed, match=r"object 1{40} is missing"):
        vcs.commit(TreeId(nothing), [start], "x", 1)
    with pytest.raises(GitFailed, match=r"object 1{40} is missing"):
        vcs.commit(vcs.tree_of(start), [start, nothing], "x", 1)


def test_a_commit_is_listed_as_git_lists_it(checkout: Checkout, vcs: Repository) -> None:
    """Every path, sorted, one that is no UTF-8 spelled out, also one that only the commit still has."""
    (checkout.root / "link").symlink_to("README.md")
    commit = CommitId(checkout.commit("more", **{"deep/er/a b.txt": "x", "od\udcffd": "x"}))
    (checkout.root / "README.md").unlink()
    listed = (path.replace("\udcff", "\\xff") for path in checkout.files(commit))
    assert vcs.paths(commit) == tuple(sorted(listed))


def test_a_file_of_a_commit_is_read_without_the_checkout(checkout: Checkout, vcs: Repository) -> None:
    """A link, a directory, a missing and a huge file are none."""
    (checkout.root / "link").symlink_to("README.md")
    commit = CommitId(
        checkout.commit("more", **{"deep/er/a.txt": "inside", "huge": "x" * (limits.TOOL_READ_BYTES + 1)})
    )
    (checkout.root / "README.md").write_text("changed since")
    assert vcs.content(commit, "README.md") == b"hello\n"
    assert vcs.content(commit, "deep/er/a.txt") == b"inside"
    assert [vcs.content(commit, path) for path in ("link", "deep", "deep/nothing", "huge")] == [None] * 4


def test_changes_have_both_sides_of_a_rename(checkout: Checkout, vcs: Repository) -> None:
    """Kinds are exact, a change of type is one modification, and the order is by path."""
    start = vcs.resolve("HEAD")
    checkout.git("mv", "src/lib.py", "lib.py")
    (checkout.root / "README.md").unlink()
    (checkout.root / "README.md").symlink_to("lib.py")
    (checkout.root / "src" / "app.py").unlink()
    end = CommitId(checkout.commit("changes", **{"src/app.py/inner": "now a directory"}))
    assert vcs.changes(start, end) == (
        Change(Kind.MODIFIED, "README.md"),
        Change(Kind.ADDED, "lib.py"),
        Change(Kind.DELETED, "src/app.py"),
        Change(Kind.ADDED, "src/app.py/inner"),
        Change(Kind.DELETED, "src/lib.py"),
    )
    assert vcs.changes(end, end) == ()


def test_one_file_is_added_or_replaced_in_a_tree(checkout: Checkout, vcs: Repository) -> None:
    """Other entries stay; what stood in the way of a directory is replaced."""
    start = vcs.resolve("HEAD")
    tree = vcs.with_file(vcs.tree_of(start), ".orchestrix/step-0-result.md", b"report")
    tree = vcs.with_file(tree, "README.md", b"new")
    tree = vcs.with_file(tree, "src/app.py/deep/er", b"x")
    made = vcs.commit(tree, [start], "files", 1)
    assert sorted(checkout.files(made)) == [
        ".orchestrix/step-0-result.md",
        "README.md",
        "src/app.py/deep/er",
        "src/lib.py",
    ]
    assert checkout.content(made, "README.md") == b"new"
    assert checkout.git("fsck", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../b", ".git/config", "a/.git/hooks/x", "a\0b"])
def test_a_path_that_leaves_the_tree_is_refused(vcs: Repository, path: str) -> None:
    """Trees never hold what a checkout must not write."""
    with pytest.raises(UsageError, match="is not a path inside a repository"):
        vcs.with_file(vcs.tree_of(vcs.resolve("HEAD")), path, b"x")


def test_a_missing_object_is_an_environment_fault(vcs: Repository) -> None:
    """It is named, with where to look."""
    with pytest.raises(GitFailed, match=r"object 1{40} is missing"):
        vcs.tree_of(CommitId("1" * 40))


def test_a_diff_for_people(checkout: Checkout, vcs: Repository) -> None:
    """Unified, without colours or external programs."""
    start = vcs.resolve("HEAD")
    end = CommitId(checkout.commit("change", **{"README.md": "bye\n"}))
    assert vcs.diff(start, end).splitlines()[-2:] == [b"-hello", b"+bye"]
    assert vcs.diff(end, end) == b""


_PRUNER = """
import os, sys
top = sys.argv[1]
print("ready", flush=True)
while True:
    for name in os.listdir(top):
        if len(name) == 2:
            try:
                os.rmdir(f"{top}/{name}")
            except OSError:
                pass
"""


def test_objects_are_written_while_the_users_gc_removes_empty_folders(checkout: Checkout, vcs: Repository) -> None:
    """A folder that goes between its making and the object's arrival is made again, as git does."""
    objects = checkout.root / ".git/objects"
    with subprocess.Popen([sys.executable, "-c", _PRUNER, str(objects)], stdout=subprocess.PIPE) as pruner:
        try:
            assert pruner.stdout is not None
            pruner.stdout.readline()
            for number in range(1_000):
                oid = vcs._objects.new_blob(b"%d" % number)
                (objects / oid[:2] / oid[2:]).unlink()  # so that its folder is soon empty again
        finally:
            pruner.kill()
