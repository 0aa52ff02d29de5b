"""Workspaces over a shared checkout: how one is filled, and its snapshot, which costs what changed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from pygit2.enums import FileMode

from harness.errors import GitFailed
from harness.model.ids import TreeId
from harness.vcs import overlay, rules, trees
from harness.vcs.git import Git
from harness.vcs.landmarks import Landmarks
from harness.vcs.objects import Objects
from harness.vcs.places import Place
from harness.vcs.private import PrivateDir
from harness.vcs.templates import Template
from harness.vcs.trees import Entries, Entry
from harness.vcs.upper import Fate, File, Folder, Reader, Unusual

_FILE_CLOCK = 5  # CLOCK_REALTIME_COARSE: what the kernel stamps files with, a little behind the other clock
_CHUNK = 1024 * 1024
_IN_MEMORY_BYTES = 32 * 1024 * 1024


def fill(place: Place, private: PrivateDir, template: Template, tree: TreeId) -> None:
    """Mounts the shared checkout; where the start point differs from it, git itself writes the difference above it."""
    overlay.mount(place, template.files)
    if tree != template.tree:
        shutil.copy2(template.index, place.index)
        private.git(place.tree, place.index).run("read-tree", "-m", "-u", template.tree, tree)
    elif time.clock_gettime(_FILE_CLOCK) >= template.second + 1:
        # The index vouches only for files that are older than itself, and from this second on every edit is newer.
        os.utime(template.index, (template.second + 1, template.second + 1))
        place.index.hardlink_to(template.index)
    else:
        shutil.copy2(template.index, place.index)


class Layered:
    """Snapshots of overlay workspaces over one object store."""

    def __init__(self, objects: Objects, landmarks: Landmarks) -> None:
        self._objects = objects
        self._landmarks = landmarks
        self._reader = Reader(objects, landmarks)
        self._rules = rules.Memory()

    def tree(
        self, place: Place, private: PrivateDir, base: TreeId, start: TreeId, left_out: Iterable[str]
    ) -> TreeId | None:
        """The tree of the workspace; None where only git itself can tell."""
        if not self._rules.of(private).steady:
            return None
        try:
            changed = self._reader.read(place.upper, start, {os.fsencode(path) for path in left_out})
            self._drop_ignored(changed, place, private, start)
            self._store(changed, place, private, start)
        except (Unusual, OSError, GitFailed):
            return None
        return self._objects.tree(self._compose(changed, self._objects.entries(base)))

    def _drop_ignored(self, changed: Folder, place: Place, private: PrivateDir, start: TreeId) -> None:
        new = [path for path, file in changed.files() if file.before is None]
        ignores = (
            self._rules.of(private).ignores
            or self._landmarks.of(start).ignores
            or any(path.endswith(b".gitignore") for path in new)
        )
        if new and ignores:
            door = private.git(place.tree)
            answer = door.run("check-ignore", "-z", "--stdin", stdin=b"\0".join([*new, b""]), ok=(0, 1))
            for path in answer.items():
                _forget(changed, path)

    def _store(self, changed: Folder, place: Place, private: PrivateDir, start: TreeId) -> None:
        files = list(changed.files())
        converts = (
            self._rules.of(private).converts
            or bool(self._landmarks.of(start).attributes)
            or any(path.endswith(b".gitattributes") for path, _ in files)
        )
        by_git = []
        top = os.fsencode(place.upper) + b"/"
        for path, file in files:
            where = top + path
            if stat.S_ISLNK(file.mode):
                file.blob = self._objects.new_blob(os.readlink(where))  # noqa: PTH115 - the bytes of the link
            elif converts or file.size > _IN_MEMORY_BYTES:
                by_git.append((path, file))
            else:
                file.blob = self._objects.new_blob(_content(where, file.size))
        if by_git:
            self._store_by_git(by_git, place, private)

    def _store_by_git(self, files: list[tuple[bytes, File]], place: Place, private: PrivateDir) -> None:
        """Git converts by attributes and by what the index holds of the same path: an index of these paths alone."""
        known = b"".join(
            b"%06o %s\t%s\0" % (trees.mode(file.before), trees.oid(file.before).encode(), path)
            for path, file in files
            if file.before
        )
        with tempfile.TemporaryDirectory(prefix="snapshot-", dir=place.run_dir) as scratch:
            plain = private.git(place.tree, Path(scratch) / "index")
            if known:
                plain.run("update-index", "-z", "--index-info", stdin=known)
            names = b"".join(path + b"\0" for path, _ in files)
            plain.run("update-index", "--add", "-z", "--stdin", stdin=names)
            listed = _staged(plain)
        for path, file in files:
            file.blob = listed[path]

    def _compose(self, folder: Folder, base: Entries) -> Entries:
        edits: dict[bytes, Entry | None] = {}
        below = {} if folder.opaque else base
        for name, item in folder.names.items():
            if isinstance(item, File):
                edits[name] = trees.made(_mode(item.mode), name, item.blob) if item.blob else None
            elif isinstance(item, Folder):
                edits[name] = self._subtree(name, item, below.get(name))
            else:
                edits[name] = folder.start.get(name) if item is Fate.AS_BEFORE else None
        return trees.edited(below, edits)

    def _subtree(self, name: bytes, folder: Folder, base: Entry | None) -> Entry | None:
        if base is not None and trees.is_tree(base) and not folder.names and not folder.opaque:
            return base
        entries = self._compose(folder, self._objects.below(base))
        return trees.made(FileMode.TREE, name, self._objects.tree(entries)) if entries else None


def _forget(changed: Folder, path: bytes) -> None:
    *above, name = path.split(b"/")
    for part in above:
        below = changed.names[part]
        assert isinstance(below, Folder)  # noqa: S101 - narrows the type; the path came out of this very tree
        changed = below
    changed.names[name] = Fate.GONE


def _content(path: bytes, size: int) -> bytes:
    """All of it: `size` is what it should be, and the end of the file decides."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        parts = [os.read(handle, size + 1)]
        while parts[-1]:
            parts.append(os.read(handle, _CHUNK))
    finally:
        os.close(handle)
    return b"".join(parts)


def _mode(mode: int) -> int:
    if stat.S_ISLNK(mode):
        return int(FileMode.LINK)
    return int(FileMode.BLOB_EXECUTABLE if mode & stat.S_IXUSR else FileMode.BLOB)


def _staged(git: Git) -> dict[bytes, str]:
    lines = (item.partition(b"\t") for item in git.run("ls-files", "--stage", "-z").items())
    return {path: meta.split(b" ")[1].decode() for meta, _, path in lines}
