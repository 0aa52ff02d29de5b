"""Refs move by compare-and-swap alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.errors import EnvironmentProblem, GitFailed, RefMoved
from harness.model.ids import CommitId, RefName, TaskId, keep_ref
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout

REF = keep_ref(RUN, TaskId("0"), "attempt-1")


def test_a_ref_is_made_moved_and_deleted_only_from_where_it_was(checkout: Checkout, vcs: Repository) -> None:
    """Each step refuses when the ref is elsewhere, and then nothing changed."""
    one = vcs.resolve("HEAD")
    two = CommitId(checkout.commit("second"))
    assert vcs.read_ref(REF) is None
    vcs.move_ref(REF, one, None)
    with pytest.raises(RefMoved, match=f"{REF} is at {one}, not at nothing"):
        vcs.move_ref(REF, two, None)
    vcs.move_ref(REF, two, one)
    with pytest.raises(RefMoved):
        vcs.move_ref(REF, one, one)
    with pytest.raises(RefMoved):
        vcs.delete_ref(REF, one)
    assert vcs.refs_under("refs/orchestrix/") == {REF: two}
    vcs.delete_ref(REF, two)
    with pytest.raises(RefMoved, match="is at nothing"):
        vcs.delete_ref(REF, two)
    assert vcs.refs_under("refs/orchestrix/") == {}


def test_exactly_one_of_many_wins(checkout: Checkout, vcs: Repository) -> None:
    """Concurrent moves from the same place: one succeeds, all others are told."""
    start = vcs.resolve("HEAD")
    commits = [vcs.commit(vcs.tree_of(start), [start], str(number), 1) for number in range(8)]
    vcs.move_ref(REF, start, None)
    others = [Repository.discover(checkout.root, vcs.state_dir.parent) for _ in commits]

    def attempt(number: int) -> bool:
        try:
            others[number].move_ref(REF, commits[number], start)
        except RefMoved:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(attempt, range(8)))
    assert results.count(True) == 1
    assert vcs.read_ref(REF) == commits[results.index(True)]


def test_packed_and_symbolic_refs_are_read(checkout: Checkout, vcs: Repository) -> None:
    """Where git keeps a ref does not matter."""
    start = vcs.resolve("HEAD")
    vcs.move_ref(REF, start, None)
    checkout.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    checkout.git("pack-refs", "--all")
    assert vcs.read_ref(REF) == start
    assert vcs.read_ref(RefName("refs/heads/alias")) == start
    vcs.delete_ref(REF, start)
    assert vcs.read_ref(REF) is None


def test_a_symbolic_ref_is_not_moved_through(checkout: Checkout, vcs: Repository) -> None:
    """An agent that turns a ref of ours into a link to the user's branch cannot make us move that branch."""
    main = vcs.resolve("main")
    new = vcs.commit(vcs.tree_of(main), [main], "new", 1)
    checkout.git("symbolic-ref", REF, "refs/heads/main")
    vcs.move_ref(REF, new, main)
    assert (vcs.resolve("main"), vcs.read_ref(REF)) == (main, new)


def test_a_name_below_or_above_another_is_named(vcs: Repository) -> None:
    """A ref cannot be file and directory: the message says which one is in the way."""
    start = vcs.resolve("HEAD")
    vcs.move_ref(REF, start, None)
    with pytest.raises(EnvironmentProblem, match=f"{REF} is in the way"):
        vcs.move_ref(RefName(f"{REF}/below"), start, None)


def test_a_failure_that_is_no_race_says_what_git_said(vcs: Repository) -> None:
    """A missing object is not a moved ref."""
    with pytest.raises(GitFailed, match="git update-ref failed"):
        vcs.move_ref(REF, CommitId("1" * 40), None)
