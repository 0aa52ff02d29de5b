"""The merge of two sides that have nothing to do with each other, tree by tree; everything else is git's to judge.

Exact when no path is changed by both sides (or both changed it alike), none becomes a directory above the other's, and
neither side deletes while the other adds: without that pair git has no rename to detect.
"""

from __future__ import annotations

from pygit2.enums import FileMode

from harness.model.changes import Kind
from harness.model.ids import TreeId
from harness.model.late import dataclass
from harness.vcs.objects import Entries, Objects

_REMEMBERED = 10_000


class _Together(Exception):
    """Both sides changed the same thing."""


@dataclass(frozen=True, slots=True)
class _Deeds:
    adds: bool
    deletes: bool


class Disjoint:
    """Merges over one object store; remembers what a side did, because the next merge asks it of its result."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: dict[tuple[str, str], _Deeds] = {}

    def merged(self, base: TreeId, ours: TreeId, theirs: TreeId) -> TreeId | None:
        """The merged tree, or None when git has to decide."""
        left, right = self._deeds(base, ours), self._deeds(base, theirs)
        if (left.deletes and right.adds) or (left.adds and right.deletes):
            return None
        try:
            tree = self._objects.tree(self._combine(base, ours, theirs))
        except _Together:
            return None
        self._known[base, tree] = _Deeds(left.adds or right.adds, left.deletes or right.deletes)
        return tree

    def _deeds(self, base: TreeId, side: TreeId) -> _Deeds:
        known = self._known.get((base, side))
        if known is None:
            kinds = {change.kind for change in self._objects.changes(base, side)}
            known = _Deeds(Kind.ADDED in kinds, Kind.DELETED in kinds)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[base, side] = known
        return known

    def _combine(self, base: str | None, ours: str, theirs: str) -> Entries:
        before: Entries = self._objects.entries(base) if base else {}
        left, right = self._objects.entries(ours), self._objects.entries(theirs)
        merged = dict(left)
        for name in before.keys() | right.keys():
            was, mine, other = before.get(name), left.get(name), right.get(name)
            if other in (was, mine):
                continue
            if mine == was:
                chosen = other
            elif mine is not None and other is not None and mine[0] == other[0] == FileMode.TREE:
                below = was[1] if was is not None and was[0] == FileMode.TREE else None
                if was is not None and below is None:
                    raise _Together
                inside = self._combine(below, mine[1], other[1])
                chosen = (int(FileMode.TREE), self._objects.tree(inside)) if inside else None
            else:
                raise _Together
            if chosen is None:
                merged.pop(name, None)
            else:
                merged[name] = chosen
        return merged
