"""Where a tree holds attribute files, ignore files and submodules, remembered for each subtree: consecutive trees share most."""

from __future__ import annotations

from pygit2.enums import FileMode

from harness.model.late import dataclass
from harness.vcs.objects import Objects

_REMEMBERED = 200_000


@dataclass(frozen=True, slots=True)
class Found:
    """Paths relative to the tree: attribute files with their blobs, and submodules; whether anything is ignored."""

    attributes: tuple[tuple[bytes, str], ...] = ()
    gitlinks: tuple[bytes, ...] = ()
    ignores: bool = False


_NOTHING = Found()


class Landmarks:
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
        attributes: list[tuple[bytes, str]] = []
        gitlinks: list[bytes] = []
        ignores = False
        for name, (mode, oid) in self._objects.entries(tree).items():
            if mode == FileMode.TREE:
                below = self.of(oid)
                attributes.extend((name + b"/" + path, blob) for path, blob in below.attributes)
                gitlinks.extend(name + b"/" + path for path in below.gitlinks)
                ignores = ignores or below.ignores
            elif mode == FileMode.COMMIT:
                gitlinks.append(name)
            elif name == b".gitattributes" and mode in (FileMode.BLOB, FileMode.BLOB_EXECUTABLE):
                attributes.append((name, oid))
            elif name == b".gitignore":
                ignores = True
        if not (attributes or gitlinks or ignores):
            return _NOTHING
        return Found(tuple(attributes), tuple(gitlinks), ignores)
