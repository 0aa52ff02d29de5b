"""Files that nobody touched keep the content of the start point, also where git would store it otherwise.

A repository may hold content that its own attributes would convert: CRLF where `text` is set, an expanded `$Id$`. Git
takes such a file for changed whenever it reads it again, and it reads again what is as young as its index.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from harness import namespace
from harness.model.ids import TreeId
from harness.vcs import rules, trees
from harness.vcs.landmarks import Landmarks
from harness.vcs.objects import Objects
from harness.vcs.private import PrivateDir
from harness.vcs.trees import Entry

_BYTES = 32 * 1024 * 1024


class Unconverted:
    """Compares snapshots with their start points over one object store."""

    def __init__(self, objects: Objects, landmarks: Landmarks) -> None:
        self._objects = objects
        self._landmarks = landmarks
        self._rules = rules.Memory()

    def kept(self, private: PrivateDir, files: Path, index: Path, start: TreeId, taken: TreeId) -> TreeId:
        """The taken tree with the start point's own entry for each file that is as a checkout writes it.

        `index` was written after the files were checked out and before the agent began.
        """
        attributes = self._landmarks.of(start).attributes
        if taken == start or not (attributes or self._rules.of(private).converts):
            return taken
        if attributes != self._landmarks.of(taken).attributes:
            return taken  # the step decided how content is stored
        young, seen = index.stat().st_ctime_ns, Path(namespace.seen(files))
        found = [
            (path, was)
            for path, was, now in self._objects.differences(start, taken)
            if was and now and trees.is_file(was) and trees.is_file(now) and was[:6] == now[:6]
            if _is_old(seen, path, young)
        ]
        same = self._as_checked_out(private, files, found) if found else {}
        return self._objects.with_entries(taken, same) if same else taken

    def _as_checked_out(self, private: PrivateDir, files: Path, found: list[tuple[bytes, Entry]]) -> dict[bytes, Entry]:
        """Git writes them as a checkout would; a name that nothing has stands between two of them."""
        mark = secrets.token_hex(16).encode()
        lines = (b"%s %s\0%s x\0" % (trees.oid(entry).encode(), path, mark) for path, entry in found)
        answer = private.git(files).run("cat-file", "-z", "--batch", "--filters", stdin=b"".join(lines))
        seen, written = Path(namespace.seen(files)), answer.out.split(b"\n%s missing\n" % mark)
        same = {}
        for (path, entry), piece in zip(found, written, strict=False):
            content = piece.partition(b"\n")[2]
            if (seen / os.fsdecode(path)).read_bytes() == content:
                same[path] = entry
        return same


def _is_old(files: Path, path: bytes, young: int) -> bool:
    """Whether it may be as it was checked out: what is younger than the index is not."""
    try:
        status = os.lstat(os.path.join(os.fsencode(files), path))  # noqa: PTH118 - bytes
    except OSError:
        return False
    return status.st_ctime_ns <= young and status.st_size <= _BYTES
