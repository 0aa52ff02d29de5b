"""What became of a checkout since its index was written, without opening a file that nobody touched.

Git does the same with whole seconds, so that everything which was checked out in the second of the index is read again:
after a quick step that is the whole checkout. Here the fractions count, too.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterable, Mapping
from functools import partial

from harness.model.ids import TreeId
from harness.vcs.composed import Composer, Job
from harness.vcs.landmarks import Landmarks
from harness.vcs.objects import Objects
from harness.vcs.places import Place
from harness.vcs.private import PrivateDir
from harness.vcs.trees import Entries, Entry
from harness.vcs.upper import OWN, Fate, File, Folder, Reader, Unusual, is_bookkeeping

_HEADER, _SECOND = struct.Struct(">4sII"), 1_000_000_000
_ENTRY = struct.Struct(">IIII4xI12xI20s2x")  # times of change and of content, inode, size and id, before the name
_PLAIN = (b"DIRC", 2)
_WORD = 0xFFFFFFFF
_MANY = 5_000
Sign = tuple[int, int, int, int, bytes]


class Compared:
    """Snapshots of checkouts over one object store."""

    def __init__(self, objects: Objects, landmarks: Landmarks) -> None:
        self._objects = objects
        self._landmarks = landmarks
        self._composer = Composer(objects, landmarks)

    def tree(self, place: Place, private: PrivateDir, start: TreeId, left_out: Iterable[str]) -> TreeId | None:
        """The tree of the workspace; None where only git itself can tell."""
        job = Job(place, private, start, start, place.tree)
        return self._composer.tree(job, partial(self._look, place, start), left_out)

    def _look(self, place: Place, start: TreeId, left_out: Collection[bytes]) -> Folder:
        """Raises Unusual, and OSError where something cannot be read."""
        if self._landmarks.of(start).gitlinks:
            raise Unusual("a submodule")
        try:
            status = place.index.stat()
            known = _known(place.index.read_bytes(), min(status.st_mtime_ns, status.st_ctime_ns))
        except (struct.error, ValueError) as error:
            raise Unusual("an index that is not whole") from error
        return _Look(self._objects, self._landmarks, known).read(place.tree, start, left_out)


class _Look(Reader):
    def __init__(self, objects: Objects, landmarks: Landmarks, known: Mapping[bytes, Sign]) -> None:
        super().__init__(objects, landmarks)
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
                if before is None or known is None or not _is_untouched(entry, known, before):
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


def _known(raw: bytes, written: int) -> dict[bytes, Sign]:
    """What the index says of each file; one that is not older than the index itself may have changed unseen."""
    signature, version, count = _HEADER.unpack_from(raw)
    if (signature, version) != _PLAIN:
        raise Unusual("an index of another kind")
    found: dict[bytes, Sign] = {}
    at = _HEADER.size
    for _ in range(count):
        seconds, fraction, content_seconds, content_fraction, inode, size, oid = _ENTRY.unpack_from(raw, at)
        end = raw.index(b"\0", at + _ENTRY.size)
        changed = seconds * _SECOND + fraction
        if changed < written:
            content = content_seconds * _SECOND + content_fraction
            found[raw[at + _ENTRY.size : end]] = (changed, content, inode, size, oid)
        at += (end - at + 8) & ~7  # an entry ends with one to eight zeros
    return found


def _is_untouched(entry: os.DirEntry[bytes], known: Sign, before: Entry) -> bool:
    """Whatever an agent does to a file, it cannot set its time of change back."""
    now = entry.stat(follow_symlinks=False)
    return known == (now.st_ctime_ns, now.st_mtime_ns, now.st_ino & _WORD, now.st_size & _WORD, before[-20:])
