"""The gitlinks that the agent tracked, beside those of the start point.

A submodule that is not checked out is an empty directory, whatever its commit: where the files say nothing, the agent's
index does, and its commits where that is silent.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path

import pygit2
from pygit2.enums import FileMode

from harness.errors import GitFailed
from harness.model import limits
from harness.model.ids import CommitId, TreeId
from harness.model.late import dataclass
from harness.vcs import index_stats, trees
from harness.vcs.objects import Objects
from harness.vcs.special_paths import SpecialPaths
from harness.vcs.upper import is_bookkeeping

_MODE = int(FileMode.COMMIT).to_bytes(4, "big")
_SLOW = b"DIRC\0\0\0\4"  # names are shortened: libgit2 reads them, five times as slow
_TIPS = 20


@dataclass(frozen=True, slots=True)
class Gitlinks:
    """Path -> commit: those of the start point, and where the agent has others."""

    begun: Mapping[str, str] = field(default_factory=dict)
    staged: Mapping[str, str | None] = field(default_factory=dict)
    """In its index; None where that has nothing any more."""
    committed: Mapping[str, str] = field(default_factory=dict)
    """In its commits alone: they may have been taken back, so that only a directory there makes them work."""

    unread: bool = False
    """Its index can be read by git alone."""

    @property
    def differ(self) -> bool:
        return bool(self.staged or self.committed or self.unread)

    def had(self, commit: str) -> bool:
        """Whether the start point names the commit anywhere: then a gitlink to it is as good as it was."""
        return commit in self.begun.values()


@dataclass(frozen=True, slots=True)
class Search:
    """Looks for gitlinks over one object store."""

    objects: Objects
    special_paths: SpecialPaths

    def tracked(self, start: TreeId, pristine: Path, index: Path, tips: Sequence[CommitId]) -> Gitlinks:
        """`index`, which was a copy of `pristine`, and `tips` are the agent's own; an index that cannot be read is silent."""
        begun, committed = self._of(start), self._committed(tips)
        raw = _content(index)
        if not begun and not committed and _MODE not in raw:
            return Gitlinks()
        if committed.keys() <= begun.keys() and raw == _content(pristine):
            return Gitlinks(begun)
        named = _named(index, raw)
        if named is None:
            others = {path: at for path, at in committed.items() if begun.get(path) != at}
            return Gitlinks(begun, {}, others, unread=bool(raw))
        staged: dict[str, str | None] = {
            path: at for path, at in named.items() if at and begun.get(path) != at and not _is_ours(path)
        }
        staged |= dict.fromkeys(_unnamed(begun, named))
        others = {path: committed[path] for path in _unnamed(committed, named) if path not in begun}
        return Gitlinks(begun, staged, others)

    def _of(self, tree: TreeId) -> dict[str, str]:
        paths = self.special_paths.of(tree).gitlinks
        return {os.fsdecode(path): self._commit(tree, path) for path in paths}

    def _commit(self, tree: TreeId, path: bytes) -> str:
        *above, name = path.split(b"/")
        entries = self.objects.entries(tree)
        for part in above:
            entries = self.objects.below(entries[part])
        return trees.oid(entries[name])

    def _committed(self, tips: Sequence[CommitId]) -> dict[str, str]:
        """The first tip is where the agent left HEAD; a commit of an agent need not be whole."""
        found: dict[str, str] = {}
        for tip in tips[:_TIPS]:
            with suppress(GitFailed):
                found = {**self._of(self.objects.tree_of(tip)), **found}
        return {path: at for path, at in found.items() if not _is_ours(path)}


def _is_ours(path: str) -> bool:
    return is_bookkeeping(os.fsencode(path))


def _content(index: Path) -> bytes:
    """Nothing where there is no index that could be read."""
    try:
        status = index.lstat()
        return index.read_bytes() if stat.S_ISREG(status.st_mode) and status.st_size <= limits.STEP_BYTES else b""
    except OSError:
        return b""


def _named(index: Path, raw: bytes) -> dict[str, str | None] | None:
    """Every path of an index, with its commit where it is a gitlink; None for an index that only git can read."""
    try:
        if raw.startswith(_SLOW):
            rows = [(os.fsencode(entry.path), int(entry.mode), str(entry.id)) for entry in pygit2.Index(str(index))]
        else:
            rows = [(path, row.mode, row.oid.hex()) for path, row in index_stats.rows(index).items()]
    except (OSError, ValueError, pygit2.GitError):
        return None
    return {os.fsdecode(path): oid if mode == FileMode.COMMIT else None for path, mode, oid in rows}


def _unnamed(paths: Mapping[str, str], named: Mapping[str, object]) -> list[str]:
    """Those at and below which an index has nothing."""
    return [path for path in paths if path not in named and not any(other.startswith(f"{path}/") for other in named)]
