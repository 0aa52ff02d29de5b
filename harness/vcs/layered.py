"""Workspaces over a shared checkout: how one is filled, and its snapshot, which costs what changed."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import pygit2
from pygit2.enums import FileMode

from harness.errors import GitFailed
from harness.model.ids import TreeId
from harness.vcs import overlay
from harness.vcs.git import Git
from harness.vcs.landmarks import Landmarks
from harness.vcs.objects import Entries, Objects
from harness.vcs.places import Place
from harness.vcs.private import PrivateDir
from harness.vcs.templates import Template
from harness.vcs.upper import Fate, File, Folder, Reader, Unusual
from harness.vcs.workspace import copy_index

_FILE_CLOCK = 5  # CLOCK_REALTIME_COARSE: what the kernel stamps files with, a little behind the other clock
_IN_MEMORY_BYTES = 32 * 1024 * 1024
_STEADY = {"core.filemode": True, "core.symlinks": True, "core.ignorecase": False, "core.precomposeunicode": False}


def fill(place: Place, private: PrivateDir, template: Template, tree: TreeId) -> None:
    """Mounts the shared checkout; where the start point differs from it, git itself writes the difference above it."""
    overlay.mount(place, template.files)
    theirs, own = f"{template.path}/index", str(place.index)
    if tree != template.tree:
        copy_index(theirs, own)
        private.git(place.tree, place.index).run("read-tree", "-m", "-u", template.tree, tree)
    elif time.clock_gettime(_FILE_CLOCK) >= template.second + 1:
        # The index vouches only for files that are older than itself, and from this second on every edit is newer.
        if os.stat(theirs).st_mtime != template.second + 1:  # noqa: PTH116 - for every workspace
            os.utime(theirs, (template.second + 1, template.second + 1))
        os.link(theirs, own)
    else:
        copy_index(theirs, own)


class Layered:
    """Snapshots of overlay workspaces over one object store."""

    def __init__(self, objects: Objects, landmarks: Landmarks) -> None:
        self._objects = objects
        self._landmarks = landmarks

    def tree(
        self, place: Place, private: PrivateDir, base: TreeId, start: TreeId, left_out: Iterable[str]
    ) -> TreeId | None:
        """The tree of the workspace; None where only git itself can tell."""
        if not _is_steady(private):
            return None
        try:
            reader = Reader(self._objects, self._landmarks)
            changed = reader.read(place.upper, start, {os.fsencode(path) for path in left_out})
            self._drop_ignored(changed, place, private, start)
            self._store(changed, place, private, start)
        except (Unusual, OSError, GitFailed):
            return None
        return self._objects.tree(self._compose(changed, self._objects.entries(base)))

    def _drop_ignored(self, changed: Folder, place: Place, private: PrivateDir, start: TreeId) -> None:
        new = [path for path, file in changed.files() if file.before is None]
        rules = (
            self._landmarks.of(start).ignores
            or private.has_rules("info/exclude", "user-excludes")
            or any(path.rpartition(b"/")[2] == b".gitignore" for path in new)
        )
        if new and rules:
            door = private.git(place.tree)
            answer = door.run("check-ignore", "-z", "--stdin", stdin=b"\0".join([*new, b""]), ok=(0, 1))
            for path in answer.items():
                _forget(changed, path)

    def _store(self, changed: Folder, place: Place, private: PrivateDir, start: TreeId) -> None:
        files = list(changed.files())
        converts = (
            bool(self._landmarks.of(start).attributes)
            or private.has_rules("info/attributes", "user-attributes")
            or any(path.rpartition(b"/")[2] == b".gitattributes" for path, _ in files)
            or _converts_lines(private)
        )
        by_git = []
        for path, file in files:
            where = os.fsencode(place.upper) + b"/" + path
            if stat.S_ISLNK(file.mode):
                file.blob = self._objects.new_blob(os.readlink(where))  # noqa: PTH115 - the bytes of the link
            elif converts or file.size > _IN_MEMORY_BYTES:
                by_git.append((path, file))
            else:
                file.blob = self._objects.new_blob(_content(where))
        if by_git:
            self._store_by_git(by_git, place, private)

    def _store_by_git(self, files: list[tuple[bytes, File]], place: Place, private: PrivateDir) -> None:
        """Git converts by attributes and by what the index holds of the same path: an index of these paths alone."""
        known = b"".join(
            b"%06o %s\t%s\0" % (file.before[0], file.before[1].encode(), path) for path, file in files if file.before
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
        entries = {} if folder.opaque else dict(base)
        for name, item in folder.names.items():
            entry: tuple[int, str] | None = None
            if isinstance(item, File):
                entry = (_mode(item.mode), item.blob) if item.blob else None
            elif isinstance(item, Folder):
                entry = self._subtree(item, None if folder.opaque else base.get(name))
            elif item is Fate.AS_BEFORE:
                entry = folder.start.get(name)
            if entry is None:
                entries.pop(name, None)
            else:
                entries[name] = entry
        return entries

    def _subtree(self, folder: Folder, base: tuple[int, str] | None) -> tuple[int, str] | None:
        inherits = base is not None and base[0] == FileMode.TREE
        if inherits and not folder.names and not folder.opaque:
            return base
        entries = self._compose(folder, self._objects.entries(base[1]) if base is not None and inherits else {})
        return (int(FileMode.TREE), self._objects.tree(entries)) if entries else None


def _forget(changed: Folder, path: bytes) -> None:
    *above, name = path.split(b"/")
    for part in above:
        below = changed.names[part]
        assert isinstance(below, Folder)  # noqa: S101 - narrows the type; the path came out of this very tree
        changed = below
    changed.names[name] = Fate.GONE


def _content(path: bytes) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        return file.read()


def _mode(mode: int) -> int:
    if stat.S_ISLNK(mode):
        return int(FileMode.LINK)
    return int(FileMode.BLOB_EXECUTABLE if mode & stat.S_IXUSR else FileMode.BLOB)


def _staged(git: Git) -> dict[bytes, str]:
    lines = (item.partition(b"\t") for item in git.run("ls-files", "--stage", "-z").items())
    return {path: meta.split(b" ")[1].decode() for meta, _, path in lines}


def _is_steady(private: PrivateDir) -> bool:
    """Settings under which a file's name, mode and kind are what the disk says."""
    config = pygit2.Config(str(private.path / "config"))
    return all(key not in config or config.get_bool(key) is usual for key, usual in _STEADY.items())


def _converts_lines(private: PrivateDir) -> bool:
    config = pygit2.Config(str(private.path / "config"))
    return "core.autocrlf" in config and (config["core.autocrlf"] or "").lower() not in ("false", "no", "off", "0", "")
