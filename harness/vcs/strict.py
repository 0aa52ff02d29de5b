"""What `git fsck --strict` says of the names and rule files that a step adds, before anybody merges or fetches them.

Nearly every change is harmless by its name alone; git is asked only about the others, one call for all of them.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from pygit2.enums import FileMode

from harness.model import limits
from harness.model.ids import TreeId
from harness.model.late import dataclass
from harness.vcs import trees
from harness.vcs.git import Git, text
from harness.vcs.objects import EMPTY_TREE, Objects
from harness.vcs.private import PrivateDir
from harness.vcs.trees import Entry

_PLAIN = re.compile(rb"\.git[a-z0-9_-][a-z0-9_.-]*")
_READ_BY_GIT = (b".gitmodules", b".gitattributes")
_MATCHED_AGAINST = (b".gitignore", b".gitattributes")
_SAID = re.compile(r"error in (?:tree|blob) ([0-9a-f]{40}): (\w+): (.*)")
_ASCII = 128
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """A path, the rule that it breaks, and what git says about it."""

    path: bytes
    rule: str
    words: str

    def __str__(self) -> str:
        return f"{text(self.path)}: {self.rule}: {self.words}"


def is_doubtful(name: bytes) -> bool:
    """Whether git may take a name for one of its own, on one system or another; in doubt, yes."""
    lower = name.lower()
    seen = lower if lower.isascii() else bytes(byte for byte in lower if byte < _ASCII)
    if b"\\" in name or (seen.startswith(b"gi") and b"~" in seen):
        return True
    return seen.startswith(b".git") and (lower in _READ_BY_GIT or not _PLAIN.fullmatch(lower))


def harmless(path: bytes) -> bytes:
    """A path under which any git keeps what no git should read."""
    parts = path.split(b"/")
    return b"/".join(b"refused-" + part.replace(b"\\", b"_") if is_doubtful(part) else part for part in parts)


class Strict:
    """Looks at what a step changed, before a tree of it is in the object store: `git fsck` would find it there."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def problems(self, private: PrivateDir, start: TreeId, changed: Mapping[bytes, Entry]) -> list[Problem]:
        """What is wrong with files that differ from the start point's."""
        asked: dict[bytes, Entry] = {}
        for path, entry in changed.items():
            if any(map(is_doubtful, path.split(b"/"))):
                asked.update(self._doubtful(path, entry, start))
        return self._judged(private, asked) if asked else []

    def beyond_limits(self, start: TreeId, taken: TreeId) -> list[Problem]:
        """Rule files that would make every later snapshot slow, and paths deeper than programs can follow."""
        large, deep = f"it is larger than {limits.RULE_FILE_BYTES} bytes", f"more than {limits.PATH_DEPTH} folders"
        found = []
        for path, _, now in self._objects.differences(start, taken):
            name = path.rpartition(b"/")[2]
            if now is None:
                continue
            if path.count(b"/") > limits.PATH_DEPTH:
                found.append(Problem(path[:_SHOWN] + b"...", "pathDepth", deep))
            elif name in _MATCHED_AGAINST and trees.is_file(now) and self._is_large(now):
                found.append(Problem(path, f"{name[1:].decode()}Large", large))
        return found

    def _is_large(self, entry: Entry) -> bool:
        return self._objects.size(trees.oid(entry)) > limits.RULE_FILE_BYTES

    def _doubtful(self, path: bytes, entry: Entry, start: TreeId) -> Iterator[tuple[bytes, Entry]]:
        """A path, and those above it, that have a doubtful name; a directory of the start point is not new."""
        before, above = self._objects.entries(start), b""
        *folders, name = path.split(b"/")
        for part in folders:
            was = before.get(part)
            if is_doubtful(part) and not (was is not None and trees.is_tree(was)):
                yield above + part, trees.made(FileMode.TREE, part, EMPTY_TREE)
            above += part + b"/"
            before = self._objects.below(was)
        if is_doubtful(name):
            yield path, entry

    def _judged(self, private: PrivateDir, asked: dict[bytes, Entry]) -> list[Problem]:
        """Each entry in a tree of its own, in a store of their own: git looks at these trees and what they name."""
        with tempfile.TemporaryDirectory(prefix="strict-", dir=private.path.parent) as scratch:
            store = Objects(Path(scratch))
            store.tree({})
            named: dict[str, bytes] = {}
            for path, entry in asked.items():
                named[store.tree({path.rpartition(b"/")[2]: entry})] = path
                named.setdefault(trees.oid(entry), path)
            door = Git(private.path, objects=Path(scratch), alternate=private.shared_objects)
            answer = door.run("fsck", "--strict", "--no-full", "--no-dangling", "--no-progress", ok=range(256))
        said = [_SAID.fullmatch(row) for row in text(answer.err).splitlines()]
        found = [Problem(named[row[1]], row[2], row[3]) for row in said if row and row[1] in named]
        return list({problem.path: problem for problem in found}.values())
