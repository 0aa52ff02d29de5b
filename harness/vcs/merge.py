"""The merge that `git merge` would make, on objects alone: no checkout, index, hook or driver of others is used."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pygit2

from harness.model.changes import Conflict, Merge
from harness.model.ids import CommitId, TreeId
from harness.vcs.disjoint import Disjoint
from harness.vcs.git import text
from harness.vcs.landmarks import Landmarks
from harness.vcs.objects import Objects
from harness.vcs.private import PrivateDir

_NOBODY = ("Orchestrix", "orchestrix@localhost")
_CONFLICTED = 1
_DROPPED = ("Auto-merging",)


def three_way(
    objects: Objects,
    landmarks: Landmarks,
    disjoint: Disjoint,
    private: PrivateDir,
    *,
    ours: CommitId,
    theirs: CommitId,
    base: CommitId,
) -> Merge:
    """Merges two commits over exactly this base; raises GitFailed when git cannot answer.

    Git 2.39 has no `merge-tree --merge-base`: commits of the three trees alone, in a store of their own, make
    `base` the only base, whatever the history is and however shallow.
    """
    trees = {side: objects.tree_of(side) for side in (ours, theirs, base)}
    if trees[theirs] in (trees[base], trees[ours]):
        return Merge(trees[ours])
    if trees[ours] == trees[base]:
        return Merge(trees[theirs])
    plain = None if _renormalizes(private) else disjoint.merged(trees[base], trees[ours], trees[theirs])
    if plain is not None:
        return Merge(plain)
    synthetic = Objects(private.own_objects)
    root = synthetic.commit(trees[base], (), "base", when=0, identity=_NOBODY)
    left, right = (
        synthetic.commit(trees[side], (root,), name, when=0, identity=_NOBODY)
        for side, name in ((ours, "ours"), (theirs, "theirs"))
    )
    with tempfile.TemporaryDirectory(prefix="merge-", dir=private.path.parent) as scratch:
        # git merge reads attributes from the checkout of ours; merge-tree from the directory that it runs in.
        for path, blob in landmarks.of(trees[ours]).attributes:
            place = Path(scratch) / os.fsdecode(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(objects.blob(blob))
        door = private.git(Path(scratch))
        answer = door.run("merge-tree", "--write-tree", "-z", "--name-only", "--messages", left, right, ok=(0, 1))
    fields = answer.out.split(b"\0")
    if answer.code != _CONFLICTED:
        return Merge(TreeId(fields[0].decode()))
    return Merge(None, _conflicts(fields[1:]))


def _renormalizes(private: PrivateDir) -> bool:
    config = pygit2.Config(str(private.path / "config"))
    return "merge.renormalize" in config and config.get_bool("merge.renormalize")


def _conflicts(fields: list[bytes]) -> tuple[Conflict, ...]:
    """Parses the conflicted names, up to an empty field, and the messages: count, paths, kind, sentence."""
    end = fields.index(b"")
    names = list(dict.fromkeys(text(name) for name in fields[:end]))
    said: dict[str, str] = {}
    others: dict[str, str] = {}
    rest = iter(fields[end + 1 :])
    for count in rest:
        if not count.isdigit():
            break  # the end, or git's advice about submodules, which is no record
        paths = [text(next(rest)) for _ in range(int(count))]
        kind, sentence = text(next(rest)), text(next(rest)).strip()
        if kind.startswith(_DROPPED):
            continue
        for path in paths:
            (said if path in names else others).setdefault(path, sentence)
    told = [Conflict(path, said.get(path, "conflict")) for path in names]
    return tuple(told or [Conflict(path, sentence) for path, sentence in others.items()])
