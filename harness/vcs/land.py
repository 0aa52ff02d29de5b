"""Landing: a branch, and the checkout that it is checked out in, moved forward or refused with the reason."""

from __future__ import annotations

import os
from pathlib import Path

from harness.errors import LandingRefused, RefMoved
from harness.model.ids import CommitId, RefName
from harness.vcs.git import Answer, Git, text
from harness.vcs.refs import Refs
from harness.vcs.repo import Layout

_OVERWRITTEN = ("would be overwritten by merge", "would lose untracked files", "would be removed by merge")


def fast_forward(layout: Layout, refs: Refs, branch: RefName, new: CommitId) -> CommitId | None:
    """Moves the branch to a commit that contains it; returns where it was, None when it did not exist.

    A checkout of the branch follows, keeping changes that do not collide. Raises LandingRefused; then nothing moved.
    """
    old = refs.read(branch)
    if old == new:
        return old
    if old is not None and not _contains(layout, new, old):
        raise LandingRefused(
            f"{branch.short} has commits that {new[:12]} does not contain",
            hint=f"merge it yourself (`git merge {new[:12]}`) or run the plan again from {branch.short}",
            branch=branch,
        )
    checkouts = _checkouts(layout, refs, branch)
    if len(checkouts) > 1:
        places = ", ".join(str(path) for path in checkouts)
        raise LandingRefused(
            f"{branch.short} is checked out in {len(checkouts)} places: {places}", hint="keep one of them"
        )
    if checkouts and old is not None:
        _advance(*next(iter(checkouts.items())), branch, new)
        return old
    try:
        refs.move(branch, new, old)
    except RefMoved as moved:
        raise LandingRefused(f"{branch.short} moved meanwhile", hint="look at it and land again") from moved
    return old


def _contains(layout: Layout, new: CommitId, old: CommitId) -> bool:
    answer = Git(layout.common_dir).run("merge-base", "--is-ancestor", old, new, ok=(0, 1))
    return answer.code == 0


def _checkouts(layout: Layout, refs: Refs, branch: RefName) -> dict[Path, Path]:
    """Directories that have the branch checked out and exist, with their git dirs."""
    found = {layout.root: layout.git_dir} if refs.head_branch() == branch else {}
    listed = Git(layout.common_dir).porcelain("worktree", "list", "--porcelain", "-z")
    for block in listed.out.split(b"\0\0"):
        lines = block.split(b"\0")
        path = Path(os.fsdecode(lines[0].removeprefix(b"worktree ")))
        # For a submodule git lists the git dir itself where the main checkout should be.
        if b"branch " + branch.encode() in lines and path != layout.root and os.path.lexists(path / ".git"):
            found[path] = _git_dir(path)
    return found


def _advance(checkout: Path, git_dir: Path, branch: RefName, new: CommitId) -> None:
    """Git moves files, index and branch together or refuses; its own check is the one that users know."""
    door = Git(git_dir, checkout, user_config=True)
    answer = door.porcelain(
        "merge", "--ff-only", "--no-autostash", "--no-overwrite-ignore", "--no-edit", "--no-stat", new, ok=range(256)
    )
    if answer.code == 0 and Git(git_dir).run("rev-parse", "--verify", "HEAD").out.decode().strip() == new:
        return
    files = _named_files(answer)
    if files:
        raise LandingRefused(
            f"landing would overwrite {', '.join(files)} in {checkout}",
            hint="commit, move or stash these files, then land again",
            branch=branch,
            paths=files,
        )
    raise LandingRefused(
        f"{checkout} cannot take {branch.short}: {answer.last_error}", hint="finish what is going on there, then land"
    )


def _git_dir(checkout: Path) -> Path:
    """Where the checkout's own HEAD and index are."""
    entry = checkout / ".git"
    if entry.is_dir():
        return entry
    target = os.fsdecode(entry.read_bytes()).removeprefix("gitdir:").strip()
    return (checkout / target).resolve()


def _named_files(answer: Answer) -> list[str]:
    """The indented names below git's sentence about what it would have overwritten."""
    lines = text(answer.err).splitlines()
    if not any(sign in line for sign in _OVERWRITTEN for line in lines):
        return []
    return [line[1:] for line in lines if line.startswith("\t")]
