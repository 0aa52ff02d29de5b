"""Commits that an agent made in a sandbox, where its objects went into a directory of its own, brought over checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.errors import GitFailed
from harness.model.ids import CommitId
from harness.vcs.git import Git
from harness.vcs.private import PrivateDir


def commits(private: PrivateDir, stranger: Path, tips: Sequence[CommitId], start: CommitId) -> str | None:
    """Copies what the tips add to `start` into the user's object store; a sentence when these commits cannot be.

    Git checks every object on the way in; the stranger's directory is only read, and never becomes an alternate.
    Raises GitFailed when the machine is at fault.
    """
    reader = Git(private.path, objects=stranger, alternate=private.shared_objects)
    writer = Git(private.path, objects=private.shared_objects)
    wanted = "".join(f"{tip}\n" for tip in tips) + f"^{start}\n"
    try:
        pack = reader.run("pack-objects", "--quiet", "--revs", "--stdout", stdin=wanted.encode())
        writer.run("unpack-objects", "-q", "--strict", stdin=pack.out)
    except GitFailed as failed:
        if failed.details.get("machine"):
            raise
        return f"the agent's own commits are not kept: {failed.message}"
    return None
