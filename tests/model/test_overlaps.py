"""All overlaps at once: the index answers what pairwise comparison answers."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model import limits, overlaps
from harness.model.globs import Ownership, overlap

PIECES = ["a", "b", "A", "é", "e\u0301", "ss", "ß", "*", "?", "[ab]", "[!a]", ".py"]
SEGMENTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)
PATTERNS = st.lists(st.one_of(SEGMENTS, st.just("**")), min_size=1, max_size=3).map("/".join)
BOUNDARIES = st.lists(st.one_of(st.none(), st.lists(PATTERNS, min_size=1, max_size=3)), max_size=8)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(BOUNDARIES)
def test_index_equals_pairwise_comparison(lists):
    """The trie finds exactly the pairs that `globs.overlap` finds."""
    boundaries = [Ownership(patterns) for patterns in lists]
    expected = [
        sum(1 << other for other in range(idx) if overlap(boundaries[other], boundaries[idx]))
        for idx in range(len(boundaries))
    ]
    assert overlaps.earlier(boundaries) == expected


@pytest.mark.parametrize("shape", ["src/m{}/**", "src/*_{}.py", "src/m{}_*", "src/m{}.py"])
def test_large_plans_need_few_comparisons(shape):
    """A thousand steps with disjoint patterns are told apart within the budget, in any order."""
    numbers = list(range(1000, 2000))
    random.Random(7).shuffle(numbers)
    assert not any(overlaps.earlier([Ownership([shape.format(n), f"t/{n}", f"docs/{n}*"]) for n in numbers]))


def test_a_spent_budget_counts_as_overlap(monkeypatch):
    """When there are too many comparisons to make, steps are serialised, never let loose."""
    monkeypatch.setattr(limits, "OVERLAP_COMPARISONS", 3)
    assert overlaps.earlier([Ownership([f"?{n}?"]) for n in "abcd"]) == [0, 0, 0, 0b111]
