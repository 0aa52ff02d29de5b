"""The merge that `git merge` would make, on objects alone: no checkout, index, hook or driver of others is used."""

from __future__ import annotations

import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from harness.model.changes import Conflict, Merge
from harness.model.ids import CommitId, TreeId
from harness.vcs import merge_process, rules
from harness.vcs.disjoint import Disjoint
from harness.vcs.git import text
from harness.vcs.merge_process import Attributes, MergeProcess
from harness.vcs.objects import Objects
from harness.vcs.private import PrivateDir
from harness.vcs.special_paths import SpecialPaths

_NOBODY = ("Orchestrix", "orchestrix@localhost")
_CLEAN = b"1"
_DROPPED = ("Auto-merging",)


class Merger:
    """Merges over one object store."""

    def __init__(self, objects: Objects, special_paths: SpecialPaths) -> None:
        self._objects = objects
        self._special_paths = special_paths
        self._disjoint = Disjoint(objects)
        self._rules = rules.Memory()
        self._process: MergeProcess | None = None
        self._unbuffered = merge_process.unbuffered()
        self._lock = threading.Lock()

    def three_way(self, private: PrivateDir, *, ours: CommitId, theirs: CommitId, base: CommitId) -> Merge:
        """Merges two commits over exactly this base; raises GitFailed when git cannot answer."""
        trees = {side: self._objects.tree_of(side) for side in (ours, theirs, base)}
        if trees[theirs] in (trees[base], trees[ours]):
            return Merge(trees[ours])
        if trees[ours] == trees[base]:
            return Merge(trees[theirs])
        three = (trees[base], trees[ours], trees[theirs])
        plain = None if self._rules.of(private).renormalizes else self._disjoint.merged(*three)
        return Merge(plain) if plain is not None else self._by_git(private, *three)

    def close(self) -> None:
        """Ends what was started to merge; it starts again when it is needed."""
        with self._lock:
            if self._process is not None:
                self._process.close()
            self._process = None

    def _by_git(self, private: PrivateDir, base: TreeId, ours: TreeId, theirs: TreeId) -> Merge:
        """Commits of the three trees alone, in a store of their own, make `base` the only base, however shallow history is.

        Git 2.39 has no `merge-tree --merge-base`.
        """
        synthetic = Objects(private.own_objects)
        root = synthetic.commit(base, (), "base", when=0, identity=_NOBODY)
        left, right = (
            synthetic.commit(tree, (root,), name, when=0, identity=_NOBODY)
            for tree, name in ((ours, "ours"), (theirs, "theirs"))
        )
        attributes = self._special_paths.of(ours).attributes
        fields = self._ask(private, attributes, left, right) or self._ask_another(private, attributes, left, right)
        clean, tree, *rest = fields
        return Merge(TreeId(tree.decode())) if clean == _CLEAN else Merge(None, _conflicts(rest))

    def _ask(self, private: PrivateDir, attributes: Attributes, left: CommitId, right: CommitId) -> list[bytes] | None:
        """The git that is there for it, or a new one where the attributes differ; None when it does not answer."""
        with self._lock:
            if self._process is not None and self._process.key != (private.path, attributes):
                self._process.close()
                self._process = None
            if self._process is None and self._unbuffered is not None:
                with suppress(OSError):
                    self._process = MergeProcess(self._objects, private, attributes, self._unbuffered)
            answer = self._process.answer(left, right) if self._process is not None else None
            if answer is None and self._process is not None:
                self._process.close()
                self._process = None
            return answer

    def _ask_another(self, private: PrivateDir, attributes: Attributes, left: CommitId, right: CommitId) -> list[bytes]:
        with tempfile.TemporaryDirectory(prefix="merge-", dir=private.path.parent) as scratch:
            merge_process.lay_out(self._objects, attributes, Path(scratch))
            door = private.git(Path(scratch))
            answer = door.run("merge-tree", "--write-tree", "-z", "--name-only", "--messages", left, right, ok=(0, 1))
        return [_CLEAN if answer.code == 0 else b"0", *answer.out.split(b"\0")]


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
