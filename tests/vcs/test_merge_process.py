"""Merges through one long-lived git are those of a git for each; where it does not answer, another one is asked."""

from __future__ import annotations

import os
import signal

from harness.model.changes import Merge
from harness.model.ids import TreeId
from harness.vcs.merge import Merger
from harness.vcs.repository import Repository

TEXT = b"one\ntwo\nthree\nfour\nfive\n"
# Names that look like the verdict and the id in git's own answer.
ODD = {"1": TEXT, "0": TEXT, "4b825dc642cb6eb9a060e54bf8d69288fbee4904": TEXT, "new\nline": TEXT}
PAIRS = (
    ({"a.txt": TEXT + b"ours\n"}, {"a.txt": b"theirs\n" + TEXT}),
    ({"a.txt": b"ours\n"}, {"a.txt": b"theirs\n"}),
    (dict.fromkeys(ODD, b"ours\n"), dict.fromkeys(ODD, b"theirs\n")),
    ({"a.txt": b"ours\n", ".gitattributes": b"*.txt merge=union\n"}, {"a.txt": b"theirs\n"}),
    ({"a.txt": b"ours\n", ".gitattributes": b"*.txt -merge\n"}, {"a.txt": b"theirs\n"}),
    ({"a.txt": TEXT + b"again\n"}, {"a.txt": b"again\n" + TEXT}),
)


def trees(vcs: Repository, *sides: dict[str, bytes]) -> list[TreeId]:
    base = {"a.txt": TEXT, **ODD}
    return [vcs._objects.tree_from({**base, **side}) for side in ({}, *sides)]


def answers(vcs: Repository, merger: Merger) -> list[Merge]:
    private = vcs._private_of(None)
    return [merger._by_git(private, *trees(vcs, ours, theirs)) for ours, theirs in PAIRS]


def test_one_git_answers_like_many(vcs: Repository) -> None:
    """Clean and conflicted merges, names like git's own answers, attributes that change between two merges."""
    one, many = Merger(vcs._objects, vcs._special_paths), Merger(vcs._objects, vcs._special_paths)
    assert one._unbuffered is not None
    many._unbuffered = None
    found = answers(vcs, one)
    assert found == answers(vcs, many)
    assert [merge.tree is not None for merge in found] == [True, False, False, True, False, True]


def test_the_same_git_serves_while_attributes_stay(vcs: Repository) -> None:
    """Most runs have one set of them."""
    merger, private = Merger(vcs._objects, vcs._special_paths), vcs._private_of(None)
    served = set()
    for ours, theirs in (*PAIRS[:3], PAIRS[5]):
        merger._by_git(private, *trees(vcs, ours, theirs))
        served.add(merger._process)
    assert len(served) == 1


def test_a_git_that_died_costs_nothing_but_time(vcs: Repository) -> None:
    """The merge is made by another one, and the next gets a new one to talk to."""
    merger, private = Merger(vcs._objects, vcs._special_paths), vcs._private_of(None)
    wanted = merger._by_git(private, *trees(vcs, *PAIRS[0]))
    assert merger._process is not None
    os.kill(merger._process._git._process.pid, signal.SIGKILL)
    assert merger._by_git(private, *trees(vcs, *PAIRS[0])) == wanted
    assert merger._process is None
    assert merger._by_git(private, *trees(vcs, *PAIRS[0])) == wanted


def test_a_git_that_keeps_its_answers_to_itself_is_not_waited_for(vcs: Repository) -> None:
    """A program in its place that ends without a word is given up at once."""
    merger, private = Merger(vcs._objects, vcs._special_paths), vcs._private_of(None)
    merger._unbuffered = "true"
    assert merger._by_git(private, *trees(vcs, *PAIRS[0])).tree is not None
    assert merger._process is None


def test_it_ends_with_the_run(vcs: Repository) -> None:
    """No process and no directory is left."""
    private = vcs._private_of(None)
    base, ours, theirs = (vcs.commit(tree, [], "m", 1) for tree in trees(vcs, *PAIRS[0]))
    assert vcs.merge(ours, theirs, base).tree is not None
    assert list(private.path.parent.glob("merge-*"))
    vcs._merger.close()
    assert not list(private.path.parent.glob("merge-*"))
