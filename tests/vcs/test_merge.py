"""Merges by objects: verdicts, named conflicts and the base that was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import GitFailed
from harness.model.changes import Conflict, Merge
from harness.model.ids import CommitId
from harness.vcs.repository import Repository
from tests.vcs.conftest import Checkout


def side(vcs: Repository, start: CommitId, **files: str) -> CommitId:
    tree = vcs.tree_of(start)
    for path, content in files.items():
        tree = vcs.with_file(tree, path, content.encode())
    return vcs.commit(tree, [start], "side", 1)


def test_a_conflict_names_path_and_cause(vcs: Repository) -> None:
    """There is no tree, and every conflicted path has git's own sentence."""
    start = vcs.resolve("HEAD")
    ours = side(vcs, start, **{"README.md": "ours\n", "both.txt": "a\n", "clean.txt": "c\n"})
    theirs = side(vcs, start, **{"README.md": "theirs\n", "both.txt": "b\n"})
    assert vcs.merge(ours, theirs, start) == Merge(
        None,
        (
            Conflict("README.md", "CONFLICT (content): Merge conflict in README.md"),
            Conflict("both.txt", "CONFLICT (add/add): Merge conflict in both.txt"),
        ),
    )


def test_a_directory_rename_against_an_added_file(checkout: Checkout, vcs: Repository) -> None:
    """Git suggests a place and calls it a conflict; so do we."""
    start = vcs.resolve("HEAD")
    checkout.git("mv", "src", "lib")
    ours = CommitId(checkout.commit("renamed"))
    merged = vcs.merge(ours, side(vcs, start, **{"src/new.py": "new\n"}), start)
    assert merged.tree is None
    assert [conflict.path for conflict in merged.conflicts] == ["lib/new.py"]
    assert "file location" in merged.conflicts[0].message


def test_the_base_is_the_one_that_was_asked_for(vcs: Repository) -> None:
    """Not the one that history suggests: a step's base is its start point."""
    first = vcs.resolve("HEAD")
    start = side(vcs, first, **{"README.md": "two\n"})
    ours = side(vcs, first, **{"README.md": "two\n", "a.txt": "a\n"})
    theirs = side(vcs, start, **{"README.md": "three\n"})
    assert vcs.merge(ours, theirs, first).conflicts
    merged = vcs.merge(ours, theirs, start)
    assert merged.tree == vcs.tree_of(side(vcs, first, **{"README.md": "three\n", "a.txt": "a\n"}))


@pytest.mark.parametrize("place", [".gitattributes", "src/.gitattributes", "info/attributes", "global"])
def test_attributes_decide_wherever_they_stand(checkout: Checkout, tmp_path: Path, place: str) -> None:
    """`merge=union` of a tree, of the repository and of the user are all honoured."""
    rule = "*.py merge=union\n"
    if place == "info/attributes":
        (checkout.root / ".git" / "info" / "attributes").write_text(rule)
    elif place == "global":
        (tmp_path / "home" / ".config" / "git").mkdir(parents=True)
        (tmp_path / "home" / ".config" / "git" / "attributes").write_text(rule)
    else:
        checkout.write(place, rule)
    checkout.commit("rules")
    vcs = Repository.discover(checkout.root, tmp_path / "state")
    start = vcs.resolve("HEAD")
    ours, theirs = (side(vcs, start, **{"src/app.py": f"{name}\n"}) for name in ("ours", "theirs"))
    merged = vcs.merge(ours, theirs, start)
    assert merged.tree is not None
    assert checkout.content(merged.tree, "src/app.py") == b"ours\ntheirs\n"


def test_a_merge_leaves_nothing_but_its_result_in_the_users_store(checkout: Checkout, vcs: Repository) -> None:
    """Synthetic commits are the harness' own affair."""
    start = vcs.resolve("HEAD")
    ours, theirs = side(vcs, start, **{"a.txt": "a\n"}), side(vcs, start, **{"b.txt": "b\n"})
    merged = vcs.merge(ours, theirs, start)
    everything = checkout.git("cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)")
    commits = {line.split()[1] for line in everything.splitlines() if line.startswith("commit")}
    assert merged.tree is not None
    assert commits == {start, ours, theirs}


def test_a_missing_commit_is_a_failure_not_a_conflict(vcs: Repository) -> None:
    """Exit statuses of git are told apart."""
    start = vcs.resolve("HEAD")
    with pytest.raises(GitFailed, match="is missing"):
        vcs.merge(start, CommitId("1" * 40), start)


def test_a_merge_that_takes_too_long_is_told_from_a_broken_machine(vcs: Repository) -> None:
    """Its content is the cause, so that the step answers for it; the next merge has its own time."""
    start = vcs.resolve("HEAD")
    ours, theirs = (side(vcs, start, **{"src/lib.py": f"{name}\n"}) for name in ("ours", "theirs"))
    vcs.git_ms = 0
    with pytest.raises(GitFailed, match="did not finish in time") as raised:
        vcs.merge(ours, theirs, start)
    assert (raised.value.details["content"], raised.value.details["overtime"]) == (True, True)
    vcs.git_ms = 60_000
    assert vcs.merge(ours, theirs, start).conflicts
