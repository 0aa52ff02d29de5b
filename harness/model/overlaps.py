"""All overlaps of many boundaries at once: a trie of segments, so that a thousand steps need no pairwise comparison."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from harness.model import limits
from harness.model.globs import Ownership
from harness.model.segments import Segment

Bits = int  # a set of step indices, one bit each

_AFTER_ALL = "\x7f"  # sorts after every character that an affix holds


class _Affixes:
    """The literal starts (or, reversed, ends) of segments: two segments can only meet if one's continues the other's."""

    __slots__ = ("_sorted",)

    def __init__(self) -> None:
        self._sorted: list[tuple[str, str]] = []

    def add(self, affix: str, name: str) -> None:
        insort(self._sorted, (affix, name))

    def related(self, affix: str) -> list[tuple[int, int]]:
        """Where in the order those stand that start with this one, or that this one starts with."""
        shorter = [(affix[:size], affix[:size] + "\x00") for size in range(len(affix))]
        bounds = [*shorter, (affix, affix + _AFTER_ALL)]
        return [(bisect_left(self._sorted, (low,)), bisect_left(self._sorted, (high,))) for low, high in bounds]

    def names(self, ranges: list[tuple[int, int]]) -> list[str]:
        return [name for start, end in ranges for _, name in self._sorted[start:end]]


class _Node:
    """A place in the trie: which steps have a pattern that ends here, and which have one here or below."""

    __slots__ = ("_all_plain", "_children", "_heads", "_tails", "below", "ending")

    def __init__(self) -> None:
        self.ending: Bits = 0
        self.below: Bits = 0
        self._children: dict[str, tuple[Segment, _Node]] = {}
        self._all_plain = True
        self._heads = _Affixes()
        self._tails = _Affixes()

    def child(self, segment: Segment) -> _Node:
        """The node below for this segment, made if it is new."""
        known = self._children.get(segment.key)
        if known is None:
            known = self._children[segment.key] = (segment, _Node())
            self._all_plain &= segment.plain
            self._heads.add(segment.head, segment.key)
            self._tails.add(segment.tail[::-1], segment.key)
        return known[1]

    def candidates(self, segment: Segment) -> list[tuple[Segment, _Node]]:
        """Every child that may meet the segment, and few others."""
        if segment.plain and self._all_plain:
            known = self._children.get(segment.key)
            return [known] if known else []
        heads = self._heads.related(segment.head)
        tails = self._tails.related(segment.tail[::-1])
        by_head = sum(end - start for start, end in heads) <= sum(end - start for start, end in tails)
        names = self._heads.names(heads) if by_head else self._tails.names(tails)
        return [self._children[name] for name in names]


class _Search:
    """The steps before one that its patterns meet; a shared budget bounds the work, and in doubt they meet."""

    def __init__(self) -> None:
        self._root = _Node()
        self._budget = limits.OVERLAP_COMPARISONS

    def add(self, idx: int, head: Sequence[Segment]) -> None:
        node = self._root
        node.below |= 1 << idx
        for segment in head:
            node = node.child(segment)
            node.below |= 1 << idx
        node.ending |= 1 << idx

    def meeting(self, head: Sequence[Segment]) -> Bits:
        found: Bits = 0
        places = [self._root]
        for segment in head:
            reached = []
            for node in places:
                found |= node.ending
                candidates = node.candidates(segment)
                self._budget -= len(candidates)
                if self._budget < 0:
                    return found | self._root.below
                reached += [child for other, child in candidates if other is segment or other.meets(segment)]
            places = reached
        for node in places:
            found |= node.below
        return found


def earlier(boundaries: Sequence[Ownership]) -> list[Bits]:
    """For each boundary the earlier ones that it overlaps, as `globs.overlap` decides it."""
    search = _Search()
    result = []
    for idx, boundary in enumerate(boundaries):
        heads = {pattern.head for pattern in boundary.patterns}
        found: Bits = 0
        for head in heads:
            found |= search.meeting(head)
        result.append(found)
        for head in heads:
            search.add(idx, head)
    return result
