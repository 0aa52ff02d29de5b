"""What became of a checkout since its index was written, without opening a file that nobody touched."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from functools import partial

from harness.model.ids import TreeId
from harness.vcs import index_stats
from harness.vcs.ignored import Ignored
from harness.vcs.index_stats import Sign, is_untouched
from harness.vcs.objects import Objects
from harness.vcs.places import Place
from harness.vcs.private import PrivateDir
from harness.vcs.special_paths import SpecialPaths
from harness.vcs.tree_composer import Composer, Job
from harness.vcs.trees import Entries, Entry
from harness.vcs.upper import OWN, Fate, File, Folder, Reader, Unusual, is_bookkeeping

_MANY = 5_000


class CheckoutSnapshot:
    """Snapshots of checkouts over one object store."""

    def __init__(self, objects: Objects, special_paths: SpecialPaths) -> None:
        self._objects = objects
        self._special_paths = special_paths
        self._composer = Composer(objects, special_paths)

    def tree(
        self, place: Place, private: PrivateDir, start: TreeId, left_out: Iterable[str], ignored: Ignored
    ) -> TreeId | None:
        """The tree of the workspace; None where only git itself can tell."""
        job = Job(place, private, start, start, place.tree, ignored)
        return self._composer.tree(job, partial(self._look, place, start), left_out)

    def _look(self, place: Place, start: TreeId, left_out: Collection[bytes]) -> Folder:
        """Raises Unusual, and OSError where something cannot be read."""
        if self._special_paths.of(start).gitlinks:
            raise Unusual("a submodule")
        try:
            known = index_stats.by(place.index)
        except ValueError as error:
            raise Unusual(str(error)) from error
        return _Look(self._objects, self._special_paths, known).read(place.tree, start, left_out)


class _Look(Reader):
    def __init__(
        self, objects: Objects, special_paths: SpecialPaths, known: Mapping[bytes, tuple[Sign, bytes]]
    ) -> None:
        super().__init__(objects, special_paths)
        self._known = known
        self._left = _MANY

    def _folder(self, directory: bytes, path: bytes, start: Entries, prepared: Collection[bytes]) -> Folder:
        found = Folder(start=start)
        seen = set()
        above = path + b"/" if path else b""
        with os.scandir(directory) as entries:
            for entry in entries:
                name = entry.name
                seen.add(name)
                if name == b".git":
                    if path:
                        raise Unusual("a nested repository")
                    continue
                before, known = start.get(name), self._known.get(above + name)
                if before is None or known is None or known[1] != before[-20:] or not is_untouched(entry, known[0]):
                    found.names[name] = self._changed(entry, above + name, before, prepared)
        for name in start.keys() - seen:
            found.names[name] = self._gone(above + name, prepared)
        return found

    def _changed(
        self, entry: os.DirEntry[bytes], path: bytes, before: Entry | None, prepared: Collection[bytes]
    ) -> File | Folder | Fate:
        item = self._item(entry, path, before, prepared)
        if item is Fate.GONE:
            raise Unusual("a device, where an overlay would mean a deletion")
        if isinstance(item, File):
            self._left -= 1
            if self._left < 0:
                raise Unusual("very many files: git is quicker with them")
        return item

    def _gone(self, path: bytes, prepared: Collection[bytes]) -> Fate:
        if path == OWN:
            raise Unusual("bookkeeping was replaced")
        return Fate.AS_BEFORE if is_bookkeeping(path) or path in prepared else Fate.GONE
