"""The ownership language: what a pattern covers, and that two steps never share a path unnoticed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.calls import calls_in

from harness.model import globs
from harness.model.globs import Ownership, overlap

COVERED = [
    ("src", "src"),
    ("src", "src/a.py"),
    ("src", "src/deep/down/a.py"),
    ("src/", "src/a.py"),
    ("src/**", "src/a/b"),
    ("src/*.py", "src/a.py"),
    ("*", ".hidden"),
    ("**/test_*.py", "test_a.py"),
    ("**/test_*.py", "a/b/test_a.py"),
    ("a/**/z", "a/z"),
    ("a/**/z", "a/b/c/z/below"),
    ("file?.txt", "file1.txt"),
    ("[a-c]x", "bx"),
    ("[!a]x", "bx"),
    ("[]]x", "]x"),
    ("[!]x", "[!]x"),
    ("[open", "[open"),
    ("app/[id].tsx", "app/[id].tsx"),
    ("app/[id].tsx", "app/i.tsx"),
    ("app/[id]/**", "app/[id]/page.tsx"),
    ("a**b", "a-long-b"),
    ("**", "anything/at/all"),
]
NOT_COVERED = [
    ("src", "srcs"),
    ("src/*.py", "src/deep/a.py"),
    ("src/*.py", "src/a.py/below"),
    ("*", "a/b"),
    ("file?.txt", "file10.txt"),
    ("file?.txt", "file.txt"),
    ("[!a]x", "ax"),
    ("SRC", "src/a.py"),
    ("a/**/z", "a/b"),
]


@pytest.mark.parametrize(("pattern", "path"), COVERED)
def test_covers(pattern, path):
    """A pattern covers what its author expects."""
    assert globs.problem(pattern) is None
    assert Ownership([pattern]).covers(path)


@pytest.mark.parametrize(("pattern", "path"), NOT_COVERED)
def test_does_not_cover(pattern, path):
    """A pattern covers nothing else."""
    assert not Ownership([pattern]).covers(path)


def test_no_patterns_own_everything():
    """A step without `owns` covers every path and overlaps every other step."""
    assert Ownership(None).covers("any/path")
    assert overlap(Ownership(None), Ownership(["a"])) == ("**", "a")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("src", "src/a.py"),
        ("src/a.py", "src"),
        ("src/*.py", "src/a*"),
        ("src/**", "src/a/*.md"),
        ("**/*.py", "docs"),
        ("src/a.py", "src/a.py/below"),
        ("README.md", "readme.MD"),
        ("caf\u00e9", "cafe\u0301"),
        ("STRASSE", "straße"),
        ("?.md", "ß.md"),
        ("e*", "e\u0301x"),
        ("[!a]x", "Ax"),
        ("[a-c]x", "[c-e]x"),
        ("app/[id].tsx", "app/[[]id].tsx"),
        ("x*y", "*xy*y"),
        ("*a*b", "a*ab"),
    ],
)
def test_overlap_is_found(one, two):
    """A shared path, a path below another, and names that some file systems take for one: all are overlaps."""
    assert overlap(Ownership([one]), Ownership([two])) == (one, two)
    assert overlap(Ownership([two]), Ownership([one])) == (two, one)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("src", "docs"),
        ("src/*.py", "src/*.md"),
        ("src/a/**", "src/b/**"),
        ("src", "srcs"),
        ("mod1_*", "mod2_*"),
        ("*_1.py", "*_2.py"),
        ("file?.txt", "file10.txt"),
        ("[a-c]x", "[d-f]x"),
        ("東/x", "京/x"),
        ("a*c", "ab"),
    ],
)
def test_disjoint_stays_disjoint(one, two):
    """Steps that cannot meet are not serialised."""
    assert overlap(Ownership([one]), Ownership([two])) is None
    assert overlap(Ownership([two]), Ownership([one])) is None


@pytest.mark.parametrize(
    ("pattern", "message", "suggestion"),
    [
        ("", "is empty", 'write "**" for everything'),
        ("  ", "is empty", 'write "**" for everything'),
        ("/src", "is absolute", "write it from the repository root: src"),
        ("/", "is absolute", "write it from the repository root: **"),
        ("../a", "leaves its directory with ..", "write it from the repository root"),
        ("a/../b", "leaves its directory with ..", "write it from the repository root"),
        ("./a", "has an empty or . segment", "write a"),
        ("a//b", "has an empty or . segment", "write a/b"),
        (".", "has an empty or . segment", "write **"),
        ("a\\b", "holds a backslash", "separate with slashes: a/b"),
        ("!a", "starts with !, but ownership has no exclusions", "list what is owned"),
        ("a\nb", "holds a control character", "remove it"),
        ("s/{a,b}.py", "holds braces, which are not expanded", "write one pattern for each: s/a.py, s/b.py"),
        ("x" * 5000, "is longer than 4096 characters", "own a directory above it"),
    ],
)
def test_bad_patterns_are_refused(pattern, message, suggestion):
    """Each refusal says what to write instead."""
    assert globs.problem(pattern) == (message, suggestion)


def test_braces_without_a_comma_are_a_name():
    """`{id}` is a name that some frameworks use."""
    assert globs.problem("routes/{id}.py") is None


SEGMENTS = st.lists(
    st.sampled_from(["a", "b", "A", "é", "e\u0301", "ß", "*", "?", "[ab]", "[!a]", "[a"]), min_size=1, max_size=4
)
PATTERNS = st.lists(st.one_of(SEGMENTS.map("".join), st.just("**")), min_size=1, max_size=3).map("/".join)
NAMES = st.text("abAée\u0301ß[]", min_size=1, max_size=4)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


def _expression(segment: str) -> str:
    """One segment as a regular expression, by the rules in the documentation."""
    pieces = re.split(r"(\*+|\?|\[[!^]?.[^\]]*\])", segment)
    glob = "".join(
        "[^/]*" if piece.startswith("*") else "[^/]" if piece == "?" else
        piece.replace("[!", "[^") if re.fullmatch(r"\[[!^]?.[^\]]*\]", piece) else re.escape(piece)
        for piece in pieces
    )  # fmt: skip
    return f"(?:{glob}|{re.escape(segment)})"


def _reference(pattern: str, path: str) -> bool:
    """Slow and plain: try every number of segments for each `**`."""
    parts = pattern.split("/")
    if parts[-1] != "**" and not re.search(r"[*?]|\[[!^]?.[^\]]*\]", parts[-1]):
        parts.append("**")

    def match(left: list[str], names: list[str]) -> bool:
        if not left:
            return not names
        if left[0] == "**":
            return any(match(left[1:], names[skip:]) for skip in range(len(names) + 1))
        return bool(names) and re.fullmatch(_expression(left[0]), names[0]) is not None and match(left[1:], names[1:])

    return match(parts, path.split("/"))


@settings(max_examples=400, deadline=None, derandomize=True)
@given(PATTERNS, PATHS)
def test_matcher_equals_the_reference(pattern, path):
    """The quick matcher and a naive one agree."""
    assert Ownership([pattern]).covers(path) == _reference(pattern, path)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(PATTERNS, PATTERNS, st.lists(PATHS, max_size=20))
def test_disjoint_is_never_claimed_falsely(one, two, paths):
    """If one step covers a path and another the same one, or one below it, they overlap."""
    mine, theirs = Ownership([one]), Ownership([two])
    shared = [path for path in paths if mine.covers(path)]
    prefixes = [below[:end] for below in paths if theirs.covers(below) for end in (*_cuts(below), len(below))]
    if set(shared) & set(prefixes):
        assert overlap(mine, theirs) is not None
        assert overlap(theirs, mine) is not None


def _cuts(path: str) -> list[int]:
    return [index for index, char in enumerate(path) if char == "/"]


def test_matching_and_comparing_never_explode():
    """Patterns that make a backtracking matcher take years: twice the length is at most four times the work."""

    def compare(stars):
        nasty = "*a" * stars + "*b"
        assert not Ownership([nasty]).covers("a" * 6 * stars)
        assert not Ownership(["**/a/" * (2 * stars // 5) + "b"]).covers("a/" * 2 * stars + "c")
        assert overlap(Ownership([nasty]), Ownership(["a" * 4 * stars])) is None
        assert overlap(Ownership([nasty]), Ownership(["?" * 4 * stars + "b"])) is not None

    work = {}
    for stars in (5, 10, 20, 250, 500):  # the small ones fail in a moment where the large ones would never end
        work[stars] = calls_in(lambda stars=stars: compare(stars))
        assert stars not in (10, 20, 500) or work[stars] < 4 * work[stars // 2]
