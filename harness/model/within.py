"""Whether one ownership pattern claims nothing beyond others: what a child may own of its parent's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.model import segments
from harness.model.globs import EVERYTHING


def outside(inner: Iterable[str], outer: Sequence[str] | None) -> list[str]:
    """The patterns that may claim a path which none of `outer` covers; in doubt they are listed; None covers all."""
    if outer is None:
        return []
    bounds = [_parts(pattern) for pattern in outer]
    return [pattern for pattern in inner if not any(_contains(bound, _parts(pattern)) for bound in bounds)]


def _parts(pattern: str) -> tuple[str, ...]:
    """The segments, with the `**` that a pattern without a wildcard at its end stands for."""
    names = [*pattern.removesuffix("/").split("/"), *([EVERYTHING] if pattern.endswith("/") else [])]
    if names[-1] != EVERYTHING and not segments.parse(names[-1]).wild:
        names.append(EVERYTHING)
    return tuple(names)


def _contains(outer: tuple[str, ...], inner: tuple[str, ...]) -> bool:
    """From the ends to the starts: which tails of the inner pattern are covered by a tail of the outer one."""
    covered = [*[False] * len(inner), True]
    for name in reversed(outer):
        tails = [covered[-1] and name == EVERYTHING]
        for part, here, beyond in zip(reversed(inner), covered[-2::-1], covered[:0:-1], strict=True):
            tails.append(here or tails[-1] if name == EVERYTHING else beyond and _covers(name, part))
        covered = tails[::-1]
    return covered[0]


def _covers(outer: str, inner: str) -> bool:
    """Of two segments; a `**` inside may be any number of segments, which no single one covers."""
    if inner == EVERYTHING:
        return False
    parsed = segments.parse(inner)
    return outer in {"*", inner} or (not parsed.wild and segments.parse(outer).matches(inner))
