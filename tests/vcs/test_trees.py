"""Entries as bytes: what is edited is the tree that git would write."""

from __future__ import annotations

import random
import subprocess

import pytest

from harness.errors import GitFailed
from harness.vcs import trees
from harness.vcs.repository import Repository
from tests.vcs.conftest import Checkout

BLOB, OTHER = "1" * 40, "2" * 40
NAMES = [b"a", b"a.b", b"a-b", b"a0", b"ab", b"b", b"\xff", b"x y"]


def by_git(checkout: Checkout, entries: trees.Entries) -> str:
    """Git sorts what it is given."""
    kinds = {0o40000: b"tree", 0o160000: b"commit"}
    lines = [
        b"%06o %s %s\t%s\0"
        % (trees.mode(entry), kinds.get(trees.mode(entry), b"blob"), trees.oid(entry).encode(), name)
        for name, entry in entries.items()
    ]
    random.Random(1).shuffle(lines)
    done = subprocess.run(
        ["git", "mktree", "-z", "--missing"],
        cwd=checkout.root,
        input=b"".join(lines),
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def test_edited_entries_are_the_tree_that_git_writes(checkout: Checkout, vcs: Repository) -> None:
    """Names that sort by their kind, set, replaced by another kind and taken away, one after the other."""
    rng, entries = random.Random(3), trees.parsed(b"")
    for _ in range(60):
        chosen = rng.sample(NAMES, rng.randrange(1, 4))
        edits = {
            name: trees.made(rng.choice([0o40000, 0o100644, 0o100755, 0o120000, 0o160000]), name, BLOB)
            if rng.random() < 0.7
            else None
            for name in chosen
        }
        after = trees.edited(entries, edits)
        assert {name: after.get(name) for name in chosen} == edits
        assert trees.differing(entries, after) == {name for name in chosen if entries.get(name) != edits[name]}
        entries = after
        assert vcs._objects.tree(entries) == by_git(checkout, entries)
        assert list(trees.parsed(trees.written(entries)).items()) == list(entries.items())


def test_modes_of_old_programs_are_read_as_git_reads_them() -> None:
    """More permission bits than count, and leading zeros."""
    raw = b"".join(
        b"%s %s\0%s" % (mode, name, bytes.fromhex(OTHER))
        for mode, name in [(b"100664", b"f"), (b"100775", b"g"), (b"040000", b"t"), (b"100644", b"x")]
    )
    read = {name: f"{trees.mode(entry):o}" for name, entry in trees.parsed(raw).items()}
    assert read == {b"f": "100644", b"g": "100755", b"t": "40000", b"x": "100644"}


def test_what_is_no_tree_is_refused(checkout: Checkout, vcs: Repository) -> None:
    """Cut short, or of another kind: never half of it."""
    whole = trees.made(0o100644, b"f", BLOB)
    for raw in (whole[:-1], whole + b"1", b"x" + whole, whole + b"100644 g"):
        with pytest.raises(ValueError, match="malformed"):
            trees.parsed(raw)
    with pytest.raises(GitFailed, match="is no tree"):
        vcs._objects.entries(checkout.git("rev-parse", "HEAD:README.md"))
