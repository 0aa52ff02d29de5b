"""New files that ignore rules name: some are work all the same, and the others are counted.

Work is what the agent tracked, in its index or in a commit, and what holds the content of a tracked file that went: a
file that was moved to a place where a rule names it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path

import pygit2

from harness.errors import GitFailed
from harness.model import limits
from harness.model.ids import CommitId, TreeId
from harness.model.late import dataclass
from harness.vcs import trees
from harness.vcs.git import check_time, text
from harness.vcs.objects import Objects
from harness.vcs.upper import is_bookkeeping

_BYTES = 32 * 1024 * 1024
_TIPS = 20


@dataclass(slots=True)
class Ignored:
    """`work` is taken whatever the rules say; `left` are the others: files, and folders with a slash at the end."""

    work: frozenset[bytes] = frozenset()
    left: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Search:
    """Looks for work among what was left out of a snapshot."""

    objects: Objects
    root: Path
    start: TreeId
    taken: TreeId
    left: Sequence[bytes]

    def work(self, index: Path, tips: Sequence[CommitId]) -> frozenset[bytes]:
        """`index` and `tips` are the agent's own: they name files, and the files decide."""
        if not self.left:
            return frozenset()
        left, top = frozenset(self.left), os.fsencode(self.root)
        named = {*_staged(index, left), *(path for path in self._committed(tips) if _below(path, left))}
        tracked = {path for path in named if _is_file(os.path.join(top, path))}  # noqa: PTH118 - bytes
        return frozenset({*tracked, *self._moved()})

    def shown(self, but: Collection[bytes]) -> list[str]:
        """What is left out, each folder once in which nothing was taken; not what the harness itself brought."""
        found: set[bytes] = set()
        for path in self.left:
            if not is_bookkeeping(path.rstrip(b"/")) and not _below(path, but):
                found.add(self._collapsed(path))
        return sorted(map(text, found))

    def _collapsed(self, path: bytes) -> bytes:
        entries, above = self.objects.entries(self.taken), b""
        for part in path.rstrip(b"/").split(b"/"):
            entry = entries.get(part)
            above += part
            if entry is None or not trees.is_tree(entry):
                return above + b"/" if len(above) < len(path) else path
            entries, above = self.objects.below(entry), above + b"/"
        return path

    def _committed(self, tips: Sequence[CommitId]) -> Iterator[bytes]:
        """A commit of an agent need not be whole."""
        for tip in tips[:_TIPS]:
            with suppress(GitFailed):
                for path, _, now in self.objects.differences(self.start, self.objects.tree_of(tip)):
                    if now is not None and not trees.is_gitlink(now):
                        yield path

    def _moved(self) -> set[bytes]:
        """Files with the content of one that went; an empty one must have its name, too."""
        gone = [
            (path, was)
            for path, was, now in self.objects.differences(self.start, self.taken)
            if was is not None and now is None and not trees.is_gitlink(was)
        ]
        if not gone:
            return set()
        names = {path.rpartition(b"/")[2] for path, _ in gone}
        ids = {trees.oid(was) for _, was in gone}
        sizes = {self.objects.size(oid) for oid in ids}
        found = set()
        for path in self._files():
            content = _content(os.path.join(os.fsencode(self.root), path), sizes, path.rpartition(b"/")[2] in names)  # noqa: PTH118 - bytes
            if content is not None and (_id_of(content) in ids or _id_of(content.replace(b"\r\n", b"\n")) in ids):
                found.add(path)
        return found

    def _files(self) -> Iterator[bytes]:
        """Those that are left out, and those in folders that are; not more of them than a person would move."""
        count = 0
        top = os.fsencode(self.root)
        for path in self.left:
            for file in _walk(top, path) if path.endswith(b"/") else (path,):
                count += 1
                if count > limits.IGNORED_FILES:
                    return
                yield file


def _walk(top: bytes, folder: bytes) -> Iterator[bytes]:
    for directory, folders, files in os.walk(top + b"/" + folder):
        check_time()
        folders[:] = [name for name in folders if name != b".git"]
        for name in files:
            yield os.path.relpath(os.path.join(directory, name), top)  # noqa: PTH118 - bytes


def _below(path: bytes, names: Collection[bytes]) -> bool:
    """Whether it is one of these, or lies in one that is a folder."""
    if path in names or path.rstrip(b"/") in names:
        return True
    parts = path.rstrip(b"/").split(b"/")
    above = (b"/".join(parts[:count]) for count in range(1, len(parts)))
    return any(folder in names or folder + b"/" in names for folder in above)


def _staged(index: Path, left: Collection[bytes]) -> list[bytes]:
    """What the agent's index names of these; nothing where it cannot be read."""
    folders = tuple(path for path in left if path.endswith(b"/"))
    try:
        status = index.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > limits.STEP_BYTES:
            return []
        entries = pygit2.Index(str(index))
        inside = [os.fsencode(entry.path) for entry in entries] if folders else []
        return [path for path in left if os.fsdecode(path) in entries] + [
            path for path in inside if path.startswith(folders)
        ]
    except (OSError, ValueError, pygit2.GitError):
        return []


def _is_file(path: bytes) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _content(path: bytes, sizes: Collection[int], named: bool) -> bytes | None:
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return os.readlink(path)  # noqa: PTH115 - the bytes of the link
        if not stat.S_ISREG(status.st_mode) or status.st_size > _BYTES:
            return None
        if not named and (status.st_size == 0 or status.st_size not in sizes):
            return None
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            return file.read(_BYTES)
    except OSError:
        return None


def _id_of(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
