"""Work that nobody waits for is done once at a time, and told of when somebody asks."""

from __future__ import annotations

import threading

import pytest

from harness.vcs.background import Background


def test_the_same_thing_is_not_done_twice_at_a_time() -> None:
    """A second removal of a workspace would find its files gone half-way."""
    background, go, done = Background(), threading.Event(), []

    def work(name: str) -> None:
        go.wait()
        done.append(name)

    for name in ("a", "b", "a", "a"):
        background.do(work, name)
    go.set()
    background.settle()
    assert sorted(done) == ["a", "b"]
    background.do(work, "a")
    background.settle()
    assert sorted(done) == ["a", "a", "b"]


def test_what_went_wrong_is_raised_once_asked() -> None:
    """Nobody waits, but nothing is swallowed."""
    background = Background()
    background.do(int, "no number")
    with pytest.raises(ValueError, match="no number"):
        background.settle()
    background.settle()
