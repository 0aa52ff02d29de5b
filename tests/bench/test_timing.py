"""Contenders take turns; the best round counts, and the worst one says how much to believe it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.timing import Comparison, Spent, compare, spend


def test_contenders_take_turns_and_the_best_round_counts() -> None:
    """The yardstick is named; whoever is compared with none has no ratio."""
    log: list[str] = []
    clocks = {"git": [2.0, 4.0], "ours": [1.5, 1.0]}

    def turn(name: str) -> Spent:
        log.append(name)
        return Spent(clocks[name][log.count(name) - 1], 0.5)

    found = compare({name: lambda name=name: turn(name) for name in clocks}, "git", {"ours": 0.25}, 2)
    assert log == ["git", "ours", "git", "ours"]
    assert found.spent == {"git": Spent(2.0, 0.5), "ours": Spent(1.0, 0.5)}
    assert (found.ratio("ours"), found.spread("git"), found.spread("ours")) == (0.5, 1.0, 0.5)
    assert found.broken == ["ours takes 0.50x of git; at most 0.25x is promised"]
    alone = Comparison({"ours": [Spent(1.0, 0.5)]}, "git", {})
    assert (alone.ratio("ours"), alone.spread("ours")) == (None, None)


def test_a_program_that_fails_is_no_measurement(tmp_path: Path) -> None:
    """Its last words are in the error."""
    with pytest.raises(RuntimeError, match="exit 3\nno luck"):
        spend(["sh", "-c", "echo no luck; exit 3"], tmp_path, dict(os.environ))


def test_an_interrupted_measurement_leaves_no_program_behind(tmp_path: Path) -> None:
    """It is told to end, and may tidy up."""

    def interrupt(_pid: int):
        while not (tmp_path / "ready").exists():
            pass
        raise KeyboardInterrupt

    tidy = "trap 'echo > tidied; exit' TERM; echo > ready; while :; do sleep 0.01; done"
    with pytest.raises(KeyboardInterrupt):
        spend(["sh", "-c", tidy], tmp_path, dict(os.environ), interrupt)
    assert (tmp_path / "tidied").exists()
