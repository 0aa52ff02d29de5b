"""What a child may own of its parent's: never a path more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model import within
from harness.model.globs import Ownership

NAMES = st.sampled_from(["a", "b", "ab", "a.py", "*", "**", "a*", "*.py", "?", "[ab]", "[!a]"])
PATTERNS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "a.py", "x.py", "c"]), min_size=1, max_size=5).map("/".join)


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ("src/api/a.py", "src/**"),
        ("src/api/**", "src"),
        ("src", "src/"),
        ("src/*.py", "src/*.py"),
        ("a/b/tests/x", "**/tests/**"),
        ("a/**/z", "a/**"),
        ("x/a/b", "*/a"),
        ("anything", "**"),
    ],
)
def test_inside(inner, outer) -> None:
    """A narrower pattern is accepted."""
    assert within.outside([inner], [outer]) == []


@pytest.mark.parametrize(
    ("inner", "outer"),
    [("**", "src"), ("src", "src/api"), ("srcs", "src"), ("a/**/x", "a/*/x"), ("src/a.py", "src/*.py"), ("*", "?")],
)
def test_outside(inner, outer) -> None:
    """A wider one is named, and so is one that may have files below where the parent has none."""
    assert within.outside([inner, outer], [outer]) == [inner]


def test_everything_has_no_outside() -> None:
    """None owns all."""
    assert within.outside(["**", "a"], None) == []


@given(PATTERNS, st.lists(PATTERNS, min_size=1, max_size=3), PATHS)
@settings(max_examples=500)
def test_what_is_accepted_claims_nothing_beyond(inner, outer, path) -> None:
    """Every path of an accepted pattern is a path of the parent."""
    if not within.outside([inner], outer) and Ownership([inner]).covers(path):
        assert Ownership(outer).covers(path)


def test_long_patterns_take_no_recursion() -> None:
    """A model may answer with anything."""
    long = "/".join(["**", "a"] * 700)
    assert within.outside([long], [long]) == []
