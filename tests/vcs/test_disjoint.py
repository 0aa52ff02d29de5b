"""The merge of sides that have nothing to do with each other is the one that git makes, or is left to git."""

from __future__ import annotations

import random

import pytest

from harness.vcs.disjoint import Disjoint
from harness.vcs.merge import Merger
from harness.vcs.repository import Repository

FOLDERS = ["", "a/", "a/b/", "c/", "d/e/"]
Files = dict[str, bytes]


def start(rng: random.Random) -> Files:
    return {
        f"{folder}f{n}.txt": b"".join(b"%s%d line %d\n" % (folder.encode(), n, k) for k in range(8))
        for folder in FOLDERS
        for n in range(rng.randrange(1, 4))
    }


def side(rng: random.Random, base: Files) -> Files:
    """A few edits, additions, deletions and, now and then, a whole directory renamed."""
    files = dict(base)
    for _ in range(rng.randrange(1, 4)):
        path = rng.choice(sorted(files))
        kind = rng.choice(["edit", "edit", "edit", "add", "add", "delete", "rename", "folder", "over"])
        if kind == "edit":
            files[path] += b"edit %d\n" % rng.randrange(9)
        elif kind == "add":
            files[f"{rng.choice(FOLDERS)}new{rng.randrange(4)}.txt"] = b"new %d\n" % rng.randrange(2)
        elif kind == "over":
            files[f"{path}/below.txt"] = files.pop(path)
        elif kind == "folder":
            folder = rng.choice(FOLDERS[1:])
            files = {name.replace(folder, "moved/", 1): content for name, content in files.items()}
        elif len(files) > 2:
            content = files.pop(path)
            if kind == "rename":
                files[f"{rng.choice(FOLDERS)}renamed{rng.randrange(3)}.txt"] = content
    return files


def test_a_decided_merge_is_the_one_of_git(vcs: Repository) -> None:
    """Generated triples, directory renames among them: where the quick way answers, git answers the same."""
    private, objects = vcs._private_of(None), vcs._objects
    quick, decided = Disjoint(objects), 0
    git = Merger(objects, vcs._special_paths)
    for seed in range(150):
        rng = random.Random(seed)
        base = start(rng)
        trees = [objects.tree_from(files) for files in (base, side(rng, base), side(rng, base))]
        tree = quick.merged(*trees)
        if tree is not None:
            decided += 1
            judged = git._by_git(private, *trees)
            assert (tree, judged.conflicts) == (judged.tree, ()), seed
    assert decided > 25


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"d/e/f": b"2\n"}, {"d/e/f": b"3\n"}),  # the same path
        ({"d/g": b"x\n"}, {}),  # an addition against deletions: a rename is possible
        ({"d": b"file\n"}, {"d/e/f": b"1\n", "d/h": b"x\n"}),  # a file in place of the other's directory
    ],
)
def test_what_may_touch_is_left_to_git(vcs: Repository, ours: Files, theirs: Files) -> None:
    """Same path, delete against add, file against directory."""
    objects = vcs._objects
    base = objects.tree_from({"d/e/f": b"1\n", "keep": b"k\n"})
    sides = [objects.tree_from({"keep": b"k\n", **files}) for files in (ours, theirs)]
    assert Disjoint(objects).merged(base, *sides) is None


def test_directories_that_both_sides_empty_are_gone(vcs: Repository) -> None:
    """A tree never holds an empty directory."""
    objects = vcs._objects
    base = objects.tree_from({"d/a": b"a\n", "d/b": b"b\n", "k": b"k\n"})
    ours, theirs = objects.tree_from({"d/b": b"b\n", "k": b"k\n"}), objects.tree_from({"d/a": b"a\n", "k": b"k\n"})
    assert Disjoint(objects).merged(base, ours, theirs) == objects.tree_from({"k": b"k\n"})
