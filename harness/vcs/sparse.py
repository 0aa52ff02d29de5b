"""Sparse workspaces: a checkout of some paths of a tree; the others stand in the index, marked as left out.

Git's mark is the skip-worktree bit. It also makes git blind to whatever stands at such a path later, so a snapshot
takes the mark off every path where something stands by then.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from harness.model.globs import Ownership, Pattern
from harness.model.ids import TreeId
from harness.model.late import dataclass
from harness.vcs import snapshot, survey, trees
from harness.vcs.git import Git, text
from harness.vcs.objects import Objects
from harness.vcs.places import Place
from harness.vcs.private import PrivateDir
from harness.vcs.snapshot import Judge, Taken
from harness.vcs.special_paths import SpecialPaths
from harness.vcs.trees import Entries


class Area:
    """What a sparse workspace holds: the files at the top level, and what ownership globs cover."""

    def __init__(self, only: Iterable[str]) -> None:
        self._owned = Ownership(only)

    def holds(self, path: bytes) -> bool:
        return b"/" not in path or self._owned.covers(text(path))

    def reaches(self, folder: bytes) -> bool:
        """Whether it may hold anything below a folder; in doubt, yes."""
        here = Pattern(text(folder))
        return any(pattern.meets(here) for pattern in self._owned.patterns)

    def of(self, objects: Objects, tree: str, prefix: bytes = b"") -> Iterator[bytes]:
        """The paths of a tree that it holds; what it does not reach is not read."""
        for name, entry in objects.entries(tree).items():
            path = prefix + name
            if not trees.is_tree(entry):
                if self.holds(path):
                    yield path
            elif self.reaches(path):
                yield from self.of(objects, trees.oid(entry), path + b"/")


@dataclass(frozen=True, slots=True)
class Sparse:
    """Fills sparse workspaces, and takes snapshots of them, over one object store."""

    objects: Objects
    special_paths: SpecialPaths

    def fill(self, place: Place, private: PrivateDir, tree: TreeId, only: Iterable[str]) -> None:
        """Writes the files that are held; every submodule is an empty directory, as in any checkout.

        Git itself leaves out everything when its list of what to check out is empty: that is quicker than naming, in
        a large repository, all that is not wanted.
        """
        (private.path / "info" / "sparse-checkout").touch()
        git = private.git(place.tree, place.index)
        git.run("-c", "core.sparseCheckout=true", "read-tree", "-m", "-u", tree)
        _unmark(git, [*Area(only).of(self.objects, tree), *self.special_paths.of(tree).gitlinks])
        git.run("checkout-index", "--index", "--all", "--quiet")

    def take(self, git: Git, place: Place, only: Iterable[str], left_out: Iterable[str], judge: Judge) -> Taken:
        """The start point with the workspace's files laid over it, less what was checked out and is gone.

        A path that was left out cannot be deleted, only replaced: by a file of its own, one above it, or one below.
        """
        gitlinks = [os.fsdecode(path) for path in self.special_paths.of(judge.start).gitlinks]
        found = self._standing(place.tree, judge.start, Area(only))
        if not found:
            return snapshot.take(git, place.index, gitlinks, left_out, judge)
        with tempfile.TemporaryDirectory(prefix="sparse-", dir=place.run_dir) as scratch:
            index = Path(scratch) / "index"
            shutil.copy2(place.index, index)
            _unmark(replace(git, index=index), found)
            return snapshot.take(git, index, gitlinks, left_out, judge)

    def has(self, tree: TreeId, name: str) -> bool:
        """Whether a tree has something under a name, or a file above it: a checkout of all would leave no room there."""
        entries = self.objects.entries(tree)
        *above, last = map(os.fsencode, PurePosixPath(name).parts)
        for part in above:
            entry = entries.get(part)
            if entry is None or not trees.is_tree(entry):
                return entry is not None
            entries = self.objects.below(entry)
        return last in entries

    def _standing(self, root: Path, start: TreeId, area: Area) -> list[bytes]:
        """The paths of the start point that were left out and where something other than a directory stands now."""
        closed: list[bytes] = []
        found = list(self._present(os.fsencode(root), b"", self.objects.entries(start), area, closed))
        if not closed:
            return found
        survey.open_doors(root)
        return list(self._present(os.fsencode(root), b"", self.objects.entries(start), area, closed))

    def _present(self, root: bytes, prefix: bytes, start: Entries, area: Area, closed: list[bytes]) -> Iterator[bytes]:
        listed = survey.listed(os.path.join(root, prefix))  # noqa: PTH118 - bytes: names need not be text
        if listed is None:
            closed.append(prefix)
        for entry in listed or ():
            before = start.get(entry.name)
            if before is None or trees.is_gitlink(before):
                continue
            path = prefix + entry.name
            folder = entry.is_dir(follow_symlinks=False)
            if trees.is_tree(before):
                if folder:
                    yield from self._present(root, path + b"/", self.objects.below(before), area, closed)
            elif not folder and not area.holds(path):
                yield path


def _unmark(git: Git, paths: Iterable[bytes]) -> None:
    git.run("update-index", "-z", "--no-skip-worktree", "--stdin", stdin=b"".join(path + b"\0" for path in paths))
