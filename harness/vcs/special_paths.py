"""Where a tree holds attribute files, ignore files and submodules, remembered for each subtree: consecutive trees share most."""

from __future__ import annotations

from harness.model.late import dataclass
from harness.vcs import trees
from harness.vcs.objects import Objects

_ATTRIBUTES, _IGNORE = b".gitattributes", b".gitignore"
_REMEMBERED = 200_000


@dataclass(frozen=True, slots=True)
class Found:
    """Paths relative to the tree: attribute files with their blobs, and submodules; whether anything is ignored."""

    attributes: tuple[tuple[bytes, str], ...] = ()
    gitlinks: tuple[bytes, ...] = ()
    ignores: bool = False


_NOTHING = Found()


class SpecialPaths:
    """A memory over one object store; a tree's id decides its content, so nothing here ever becomes stale."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: dict[str, Found] = {}

    def of(self, tree: str) -> Found:
        known = self._known.get(tree)
        if known is None:
            known = self._look(tree)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[tree] = known
        return known

    def _look(self, tree: str) -> Found:
        entries = self._objects.glanced(tree)
        own, ignore = entries.get(_ATTRIBUTES), entries.get(_IGNORE)
        attributes = [(_ATTRIBUTES, trees.oid(own))] if own is not None and trees.is_file(own) else []
        ignores = ignore is not None and not trees.is_tree(ignore) and not trees.is_gitlink(ignore)
        gitlinks: list[bytes] = []
        for name in [name for name, entry in entries.items() if not trees.is_file(entry)]:
            if trees.is_gitlink(entries[name]):
                gitlinks.append(name)
            elif trees.is_tree(entries[name]):
                below = self.of(trees.oid(entries[name]))
                attributes.extend((name + b"/" + path, blob) for path, blob in below.attributes)
                gitlinks.extend(name + b"/" + path for path in below.gitlinks)
                ignores = ignores or below.ignores
        if not (attributes or gitlinks or ignores):
            return _NOTHING
        return Found(tuple(attributes), tuple(gitlinks), ignores)
