"""Workspaces over a shared checkout: how one is filled, and its snapshot, which costs what changed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from functools import partial

from harness.model.ids import TreeId
from harness.vcs import overlay
from harness.vcs.composed import Composer, Job
from harness.vcs.landmarks import Landmarks
from harness.vcs.objects import Objects
from harness.vcs.places import Place
from harness.vcs.private import PrivateDir
from harness.vcs.templates import Template
from harness.vcs.upper import Reader
from harness.vcs.workspace import copy_index

_FILE_CLOCK = 5  # CLOCK_REALTIME_COARSE: what the kernel stamps files with, a little behind the other clock


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
        self._reader = Reader(objects, landmarks)
        self._composer = Composer(objects, landmarks)

    def tree(
        self, place: Place, private: PrivateDir, base: TreeId, start: TreeId, left_out: Iterable[str]
    ) -> TreeId | None:
        """The tree of the workspace; None where only git itself can tell."""
        job = Job(place, private, start, base, place.upper)
        return self._composer.tree(job, partial(self._reader.read, place.upper, start), left_out)
