"""The tree of a workspace, made of its start point and of what changed since: it costs what changed."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from pygit2.enums import FileMode

from harness.errors import GitFailed
from harness.model.ids import TreeId
from harness.model.late import dataclass
from harness.vcs import rules, trees
from harness.vcs.git import Git, check_time
from harness.vcs.ignored import Ignored
from harness.vcs.objects import Objects
from harness.vcs.places import Place
from harness.vcs.private import PrivateDir
from harness.vcs.special_paths import SpecialPaths
from harness.vcs.trees import Entries, Entry
from harness.vcs.unconverted import Candidate, Unconverted
from harness.vcs.upper import Fate, File, Folder, Unusual

_CHUNK = 1024 * 1024
_IN_MEMORY_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Job:
    """One workspace: `files` is where what changed lies, and `base` the tree that it changed."""

    place: Place
    private: PrivateDir
    start: TreeId
    base: TreeId
    files: Path
    ignored: Ignored


class Composer:
    """Makes trees over one object store."""

    def __init__(self, objects: Objects, special_paths: SpecialPaths) -> None:
        self._objects = objects
        self._special_paths = special_paths
        self._rules = rules.Memory()
        self._unconverted = Unconverted(objects, special_paths)

    def tree(self, job: Job, look: Callable[[Collection[bytes]], Folder], left_out: Iterable[str]) -> TreeId | None:
        """`look` says what changed, but for the paths it is given; None where only git itself can tell."""
        if not self._rules.of(job.private).steady:
            return None
        try:
            changed = look({os.fsencode(path) for path in left_out})
            self._drop_ignored(changed, job)
            self._store(changed, job)
        except (Unusual, OSError, GitFailed):
            return None
        return self._objects.tree(self._compose(changed, self._objects.entries(job.base)))

    def _drop_ignored(self, changed: Folder, job: Job) -> None:
        new = [path for path, file in changed.files() if file.before is None]
        ignores = (
            self._rules.of(job.private).ignores
            or self._special_paths.of(job.start).ignores
            or any(path.endswith(b".gitignore") for path in new)
        )
        if new and ignores:
            door = job.private.git(job.place.tree)
            answer = door.run("check-ignore", "-z", "--stdin", stdin=b"\0".join([*new, b""]), ok=(0, 1))
            for path in answer.items():
                if path not in job.ignored.work:
                    job.ignored.left.append(path)
                    _forget(changed, path)

    def _store(self, changed: Folder, job: Job) -> None:
        files = list(changed.files())
        converts = (
            self._rules.of(job.private).converts
            or bool(self._special_paths.of(job.start).attributes)
            or any(path.endswith(b".gitattributes") for path, _ in files)
        )
        by_git = []
        top = os.fsencode(job.files) + b"/"
        for path, file in files:
            check_time()
            where = top + path
            if stat.S_ISLNK(file.mode):
                file.blob = self._objects.new_blob(os.readlink(where))  # noqa: PTH115 - the bytes of the link
            elif converts or file.size > _IN_MEMORY_BYTES:
                by_git.append((path, file))
            else:
                file.blob = self._stored(_content(where, file.size), file.before)
        if by_git:
            self._store_by_git(self._changed(by_git, job) if converts else by_git, job)

    def _changed(self, files: list[tuple[bytes, File]], job: Job) -> list[tuple[bytes, File]]:
        """Without those that are as they were checked out: they keep what they are at the start point."""
        found = [
            Candidate(path, trees.oid(file.before), file.size)
            for path, file in files
            if file.before and trees.is_file(file.before) and trees.mode(file.before) == _mode(file.mode)
        ]
        same = self._unconverted.as_checked_out(job.private, job.place, job.start, job.files, found)
        for path, file in files:
            if path in same and file.before:
                file.blob = trees.oid(file.before)
        return [(path, file) for path, file in files if path not in same]

    def _stored(self, content: bytes, before: Entry | None) -> str:
        """What is as it was before needs no object of its own."""
        if before is not None and before.endswith(_id_of(content)):
            return trees.oid(before)
        return self._objects.new_blob(content)

    def _store_by_git(self, files: list[tuple[bytes, File]], job: Job) -> None:
        """Git converts by attributes and by what the index holds of the same path: an index of these paths alone."""
        known = b"".join(
            b"%06o %s\t%s\0" % (trees.mode(file.before), trees.oid(file.before).encode(), path)
            for path, file in files
            if file.before
        )
        if not files:
            return
        with tempfile.TemporaryDirectory(prefix="snapshot-", dir=job.place.run_dir) as scratch:
            plain = job.private.git(job.place.tree, Path(scratch) / "index")
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


def _id_of(content: bytes) -> bytes:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).digest()


def _mode(mode: int) -> int:
    if stat.S_ISLNK(mode):
        return int(FileMode.LINK)
    return int(FileMode.BLOB_EXECUTABLE if mode & stat.S_IXUSR else FileMode.BLOB)


def _staged(git: Git) -> dict[bytes, str]:
    lines = (item.partition(b"\t") for item in git.run("ls-files", "--stage", "-z").items())
    return {path: meta.split(b" ")[1].decode() for meta, _, path in lines}
