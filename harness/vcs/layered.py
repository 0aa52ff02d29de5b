"""Workspaces over a shared checkout: how one is filled, and its snapshot, which costs what changed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from functools import partial

from pygit2.enums import FileMode

from harness.errors import GitFailed
from harness.model.ids import TreeId
from harness.vcs import overlay, trees
from harness.vcs.ignored import Ignored
from harness.vcs.objects import Objects
from harness.vcs.places import Place
from harness.vcs.private import PrivateDir
from harness.vcs.special_paths import SpecialPaths
from harness.vcs.templates import Template
from harness.vcs.tree_composer import Composer, Job
from harness.vcs.trees import Entries, Entry
from harness.vcs.upper import Reader
from harness.vcs.workspace import copy_index

_FILE_CLOCK = 5  # CLOCK_REALTIME_COARSE: what the kernel stamps files with, a little behind the other clock


def fill(place: Place, private: PrivateDir, template: Template, tree: TreeId) -> None:
    """Mounts the shared checkout; where the start point differs from it, git itself writes the difference above it."""
    overlay.mount(place, template.files)
    theirs, own = f"{template.path}/index", str(place.index)
    if tree != template.tree:
        copy_index(theirs, own)
        git = private.git(place.tree, place.index)
        try:
            git.run("read-tree", "-m", "-u", template.tree, tree)
        except GitFailed as failed:
            if failed.details.get("machine"):
                raise
            # Content that git would store otherwise than it is looks changed to it.
            git.run("read-tree", "--reset", "-u", tree)
    elif time.clock_gettime(_FILE_CLOCK) >= template.second + 1:
        # The index vouches only for files that are older than itself, and from this second on every edit is newer.
        if os.stat(theirs).st_mtime != template.second + 1:  # noqa: PTH116 - for every workspace
            os.utime(theirs, (template.second + 1, template.second + 1))
        os.link(theirs, own)
    else:
        copy_index(theirs, own)


class Layered:
    """Snapshots of overlay workspaces over one object store."""

    def __init__(self, objects: Objects, special_paths: SpecialPaths) -> None:
        self._objects, self._special_paths = objects, special_paths
        self._reader = Reader(objects, special_paths)
        self._composer = Composer(objects, special_paths)

    def tree(
        self, place: Place, private: PrivateDir, over: tuple[TreeId, TreeId], left_out: Iterable[str], ignored: Ignored
    ) -> TreeId | None:
        """The tree of the workspace, over the trees of its shared checkout and of its start point.

        None where only git itself can tell.
        """
        base, start = over
        job = Job(place, private, start, self._with_gitlinks(base, start), place.upper, ignored)
        return self._composer.tree(job, partial(self._reader.read, place.upper, start), left_out)

    def _with_gitlinks(self, base: TreeId, start: TreeId) -> TreeId:
        """The shared checkout's tree with the start point's submodules where both have one.

        A submodule is an empty directory in both, whatever its commit: the upper directory cannot show the difference.
        """
        if base == start or not self._special_paths.of(base).gitlinks:
            return base
        return self._objects.tree(self._relinked(self._objects.entries(base), self._objects.entries(start)))

    def _relinked(self, base: Entries, start: Entries) -> Entries:
        edits: dict[bytes, Entry | None] = {}
        for name in trees.differing(base, start):
            one, other = base.get(name), start.get(name)
            if one is None or other is None:
                continue
            if trees.is_gitlink(one) and trees.is_gitlink(other):
                edits[name] = other
            elif trees.is_tree(one) and trees.is_tree(other) and self._special_paths.of(trees.oid(one)).gitlinks:
                below = self._relinked(self._objects.below(one), self._objects.below(other))
                edits[name] = trees.made(FileMode.TREE, name, self._objects.tree(below))
        return trees.edited(base, edits)
