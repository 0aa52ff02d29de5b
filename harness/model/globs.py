"""The ownership language: globs relative to the repository root.

`*`, `?` and `[...]` stay within a segment, `**` is any number of segments, a pattern whose last segment has no
wildcard also covers everything below it, and a name that is a segment's own text always matches it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product, starmap, takewhile

from harness.model import limits, segments
from harness.model.segments import Segment

EVERYTHING = "**"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def problem(pattern: str) -> tuple[str, str] | None:
    """What is wrong with a pattern and what to write instead; None when it is good."""
    return next(_problems(pattern), None)


def _problems(pattern: str) -> Iterator[tuple[str, str]]:
    parts = pattern.removesuffix("/").split("/")
    braces = _BRACES.search(pattern)
    if not pattern.strip():
        yield "is empty", f'write "{EVERYTHING}" for everything'
    if len(pattern) > limits.PATTERN_CHARS:
        yield f"is longer than {limits.PATTERN_CHARS} characters", "own a directory above it"
    if _CONTROL.search(pattern):
        yield "holds a control character", "remove it"
    if "\\" in pattern:
        yield "holds a backslash", f"separate with slashes: {pattern.replace(chr(92), '/')}"
    if pattern.startswith("!"):
        yield "starts with !, but ownership has no exclusions", "list what is owned"
    if braces:
        either = [pattern[: braces.start()] + part + pattern[braces.end() :] for part in braces[1].split(",")]
        yield "holds braces, which are not expanded", "write one pattern for each: " + ", ".join(either)
    if pattern.startswith("/"):
        yield "is absolute", f"write it from the repository root: {pattern.lstrip('/') or EVERYTHING}"
    if ".." in parts:
        yield "leaves its directory with ..", "write it from the repository root"
    if "." in parts or "" in parts:
        yield "has an empty or . segment", f"write {'/'.join(p for p in parts if p not in {'.', ''}) or EVERYTHING}"


class Pattern:
    """One glob that `problem` found nothing wrong with."""

    __slots__ = ("_parts", "head", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        names = f"{text}{EVERYTHING}".split("/") if text.endswith("/") else text.split("/")
        parts = [None if name == EVERYTHING else segments.parse(name) for name in names]
        if parts[-1] is not None and not parts[-1].wild:
            parts.append(None)
        self._parts = parts
        self.head = tuple(part for part in takewhile(bool, parts) if part)

    def covers(self, path: str) -> bool:
        return segments.greedy(self._parts, path.split("/"), Segment.matches)

    def meets(self, other: Pattern) -> bool:
        """Whether a path of one may be a path of the other, or lie below it.

        What is below counts on both sides, so a `**` or the end of either pattern takes in whatever the other one
        goes on with: only the segments before that, the heads, decide.
        """
        return all(starmap(Segment.meets, zip(self.head, other.head, strict=False)))


class Ownership:
    """The boundary of one step; None owns everything."""

    __slots__ = ("patterns",)

    def __init__(self, patterns: Iterable[str] | None) -> None:
        self.patterns = tuple(map(Pattern, [EVERYTHING] if patterns is None else patterns))

    def covers(self, path: str) -> bool:
        """Whether a path, relative to the repository root with slashes, lies within; exact in case and Unicode form."""
        return any(pattern.covers(path) for pattern in self.patterns)


def overlap(one: Ownership, two: Ownership) -> tuple[str, str] | None:
    """The first two patterns that may claim one path, or a path and one below it; None only if there are none.

    Names that differ in case or Unicode form only are one name here, since they are on some file systems.
    """
    pairs = product(one.patterns, two.patterns)
    return next(((mine.text, theirs.text) for mine, theirs in pairs if mine.meets(theirs)), None)
