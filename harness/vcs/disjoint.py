"""The merge of two sides that have nothing to do with each other, tree by tree; everything else is git's to judge.

Exact when no path is changed by both sides (or both changed it alike), none becomes a directory above the other's, and
neither side deletes while the other adds: without that pair git has no rename to detect.
"""

from __future__ import annotations

from pygit2.enums import FileMode

from harness.model.changes import Kind
from harness.model.ids import TreeId
from harness.model.late import dataclass
from harness.vcs import trees
from harness.vcs.objects import Objects
from harness.vcs.trees import Entries, Entry

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
            tree = self._objects.tree(self._combine(*map(self._objects.entries, (base, ours, theirs))))
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

    def _combine(self, before: Entries, left: Entries, right: Entries) -> Entries:
        """Ours, with what theirs did: only the names that theirs changed are looked at."""
        chosen: dict[bytes, Entry | None] = {}
        for name in trees.differing(before, right):
            was, mine, other = before.get(name), left.get(name), right.get(name)
            if mine == was:
                chosen[name] = other
            elif mine != other:
                chosen[name] = self._inside(name, was, mine, other)
        return trees.edited(left, chosen)

    def _inside(self, name: bytes, was: Entry | None, mine: Entry | None, other: Entry | None) -> Entry | None:
        """A directory that both sides changed, each in its own way."""
        if mine is None or other is None or not (trees.is_tree(mine) and trees.is_tree(other)):
            raise _Together
        if was is not None and not trees.is_tree(was):
            raise _Together
        entries = self._combine(*map(self._objects.below, (was, mine, other)))
        return trees.made(FileMode.TREE, name, self._objects.tree(entries)) if entries else None
