"""What an overlay's upper directory says: which names changed, went or were replaced, without opening a file.

Whatever only git itself should judge is refused as `Unusual`; the caller then lets git look at the whole workspace.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import field
from enum import Enum, auto
from pathlib import Path

from harness.model.late import dataclass
from harness.vcs import strict, trees
from harness.vcs.objects import Objects
from harness.vcs.special_paths import SpecialPaths
from harness.vcs.trees import Entries, Entry

_DEEP = 100
_XATTR_SPACES = ("trusted.overlay.", "user.overlay.")
OWN = b".orchestrix"
_REPORT = re.compile(rb"step-[^/]*-result\.md")


class Unusual(Exception):
    """Something that is left to git: nested repositories, submodules, special files, moved directories, odd names."""


class Fate(Enum):
    """What became of a name, when it is neither a file nor a directory of the upper layer."""

    GONE = auto()
    AS_BEFORE = auto()


@dataclass(slots=True)
class File:
    """A regular file or a symbolic link; `blob` is filled in by whoever reads it."""

    mode: int
    size: int
    before: Entry | None
    """What the start point holds under this very path; None: git would call the file untracked."""
    blob: str | None = None


@dataclass(slots=True)
class Folder:
    """A directory of the upper layer; an opaque one hides what is below it."""

    opaque: bool = False
    start: Entries = field(default_factory=dict)
    names: dict[bytes, File | Folder | Fate] = field(default_factory=dict)

    def files(self, prefix: bytes = b"") -> Iterator[tuple[bytes, File]]:
        for name, item in self.names.items():
            if isinstance(item, Folder):
                yield from item.files(prefix + name + b"/")
            elif isinstance(item, File):
                yield prefix + name, item


class Reader:
    """Reads upper directories against one object store."""

    def __init__(self, objects: Objects, special_paths: SpecialPaths) -> None:
        self._objects = objects
        self._special_paths = special_paths

    def read(self, upper: Path, start: str, prepared: Collection[bytes]) -> Folder:
        """Raises Unusual, and OSError where something cannot be read."""
        return self._folder(os.fsencode(upper), b"", self._objects.entries(start), prepared)

    def _folder(self, directory: bytes, path: bytes, start: Entries, prepared: Collection[bytes]) -> Folder:
        found = Folder(_is_opaque(directory) if path else False, start)
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name != b".git":
                    below = path + b"/" + entry.name if path else entry.name
                    found.names[entry.name] = self._item(entry, below, start.get(entry.name), prepared)
                elif path:
                    raise Unusual("a nested repository")
        if found.opaque:
            self._refuse_submodules(start.values())
        return found

    def _item(
        self, entry: os.DirEntry[bytes], path: bytes, before: Entry | None, prepared: Collection[bytes]
    ) -> File | Folder | Fate:
        if is_bookkeeping(path) or path in prepared:
            return Fate.AS_BEFORE
        status = _status(entry)
        if path == OWN and not stat.S_ISDIR(status.st_mode):
            raise Unusual("bookkeeping was replaced")
        if before is not None and trees.is_gitlink(before):
            raise Unusual("a submodule")
        if stat.S_ISDIR(status.st_mode):
            if path.count(b"/") > _DEEP:
                raise Unusual("a very deep directory")
            folder = self._folder(entry.path, path, self._objects.below(before), prepared)
            if path == OWN and folder.opaque and before is not None:
                raise Unusual("bookkeeping was replaced")
            return folder
        if before is not None:
            self._refuse_submodules((before,))
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            return Fate.GONE
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISLNK(status.st_mode):
            raise Unusual("a special file")
        tracked = before if before is not None and not trees.is_tree(before) else None
        return File(status.st_mode, status.st_size, tracked)

    def _refuse_submodules(self, hidden: Iterable[Entry]) -> None:
        for entry in hidden:
            if trees.is_gitlink(entry) or (trees.is_tree(entry) and self._special_paths.of(trees.oid(entry)).gitlinks):
                raise Unusual("a submodule went")


def _status(entry: os.DirEntry[bytes]) -> os.stat_result:
    if strict.is_doubtful(entry.name):
        raise Unusual("a name that git may refuse")
    return entry.stat(follow_symlinks=False)


def _is_opaque(directory: bytes) -> bool:
    names = {name for name in os.listxattr(directory) if name.startswith(_XATTR_SPACES)}
    if any(name.endswith(".redirect") for name in names):
        raise Unusual("a moved directory")
    return any(os.getxattr(directory, name) == b"y" for name in names if name.endswith(".opaque"))


def is_bookkeeping(path: bytes) -> bool:
    """What the harness itself puts beside the work: never part of it."""
    folder, _, name = path.partition(b"/")
    return folder == OWN and (name == b"local" or _REPORT.fullmatch(name) is not None)
