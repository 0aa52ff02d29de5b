"""Any finish order gives the same tree, and merge commits always stand in plan order."""

from __future__ import annotations

import random

import pytest
from support import checker
from support.workbench import Workbench, shell

_STEPS = 8


def _plan(seed: int) -> list[dict]:
    """Eight steps, some of which need others, that finish in an order of chance."""
    dice = random.Random(seed)
    return [
        shell(
            f'sleep {dice.uniform(0, 0.08):.3f}; seen=$(ls); echo "$seen" > part{idx}.txt',
            title=f"part {idx}",
            owns=[f"part{idx}.txt"],
            needs=[idx - 3] if idx % 3 == 0 and idx else [],
        )
        for idx in range(_STEPS)
    ]


def _trees(bench: Workbench, runs: int) -> set[str]:
    trees = set()
    for seed in range(runs):
        done = bench.run(*_plan(seed), flags=("-j", "8", "--sandbox", "none"))
        assert done.code == 0, done.out
        span = f"{done.data['base']}..{done.data['head']}"
        subjects = bench.git("log", "--first-parent", "--reverse", "--format=%s", span).splitlines()
        assert subjects == [f"Merge step {idx}: part {idx}" for idx in range(_STEPS)]
        trees.add(bench.git("rev-parse", f"{done.data['head']}^{{tree}}"))
    assert checker.check(bench.files) == []
    return trees


def test_a_few_finish_orders_give_one_tree(bench: Workbench) -> None:
    """The quick version: three seeds."""
    assert len(_trees(bench, 3)) == 1


@pytest.mark.sweep
def test_two_hundred_finish_orders_give_one_tree(bench: Workbench) -> None:
    """200 runs of eight steps with random sleeps: one tree hash."""
    assert len(_trees(bench, 200)) == 1
