"""The record: a finished run as a commit that can be pushed, fetched and read like any other."""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import NotFound
from harness.model.ids import CommitId, RunId, record_ref
from harness.vcs.objects import Objects
from harness.vcs.refs import Refs


def compose(
    objects: Objects, run: RunId, files: Mapping[str, bytes], *, when: int, identity: tuple[str, str]
) -> CommitId:
    """The commit that holds these files; it has no parent, so that it drags no history along."""
    tree = objects.tree_from(files)
    return objects.commit(tree, (), f"Orchestrix run {run}\n\nOrchestrix-Run: {run}", when=when, identity=identity)


def read(objects: Objects, refs: Refs, run: RunId) -> dict[str, bytes]:
    """The files of a record; raises NotFound."""
    commit = refs.read(record_ref(run))
    if commit is None:
        raise NotFound(
            f"run {run} has no record here", hint="fetch it: git fetch <remote> 'refs/orchestrix/*:refs/orchestrix/*'"
        )
    return dict(objects.files(commit))
