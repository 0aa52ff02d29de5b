"""Commits that an agent made, whose objects went into a directory of its own, brought over checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.errors import GitFailed
from harness.model.ids import CommitId
from harness.vcs.git import Git
from harness.vcs.private import PrivateDir


def commits(private: PrivateDir, stranger: Path, tips: Sequence[CommitId], start: CommitId) -> list[str]:
    """Copies what the tips add to `start` into the user's object store; sentences about those that cannot be.

    All at once, and one by one when one of them is in the way. Raises GitFailed when the machine is at fault.
    """
    problem = _bring(private, stranger, tips, start)
    if problem is None or len(tips) == 1:
        return [problem] if problem else []
    told = (_bring(private, stranger, (tip,), start) for tip in tips)
    return list(dict.fromkeys(said for said in told if said))


def _bring(private: PrivateDir, stranger: Path, tips: Sequence[CommitId], start: CommitId) -> str | None:
    """Git checks every object on the way in; the stranger's directory is only read, and never becomes an alternate.

    Only objects that lie there are taken (`--local`), and the history that a commit-graph there pretends is not read.
    """
    reader = Git(private.path, objects=stranger, alternate=private.shared_objects)
    writer = Git(private.path, objects=private.shared_objects)
    wanted = "".join(f"{tip}\n" for tip in tips) + f"^{start}\n"
    asked = ("pack-objects", "--quiet", "--local", "--revs", "--stdout")
    try:
        pack = reader.run("-c", "core.commitGraph=false", *asked, stdin=wanted.encode())
        writer.run("unpack-objects", "-q", "--strict", stdin=pack.out)
    except GitFailed as failed:
        if failed.details.get("machine"):
            raise
        return f"the agent's own commits are not kept: {failed.message}"
    return None
