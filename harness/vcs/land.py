"""Landing: a branch, and the checkout that it is checked out in, moved forward, or back again, or refused with the reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from harness.errors import LandingRefused, RefMoved
from harness.model.ids import CommitId, RefName
from harness.vcs import checkout_move
from harness.vcs.checkout_move import Checkout, IsOurs, Move, Verb
from harness.vcs.git import Git
from harness.vcs.refs import Refs
from harness.vcs.repo import Layout


def never_ours(_path: str, _content: bytes) -> bool:
    """Every file in the way is the user's."""
    return False


_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "BISECT_START": "a bisection",
}


def check(layout: Layout, refs: Refs, branch: RefName, new: CommitId) -> CommitId | None:
    """Where the branch is; raises LandingRefused when it cannot be moved forward to `new`. Files are not looked at."""
    old = refs.read(branch)
    if old == new:
        return old
    if old is not None and not _contains(layout, new, old):
        raise LandingRefused(
            f"{branch.short} has commits that {new[:12]} does not contain",
            hint=f"merge it yourself (`git merge {new[:12]}`) or run the plan again from {branch.short}",
            branch=branch,
        )
    _free(layout, refs, branch, old, "land")
    return old


def fast_forward(layout: Layout, refs: Refs, wanted: Move, is_ours: IsOurs) -> CommitId | None:
    """Moves the branch to a commit that contains it; returns where it was, None when it did not exist.

    A checkout of the branch follows, keeping changes that do not collide; an untracked file in the way goes only if
    `is_ours` knows its path and content. Raises LandingRefused; then nothing moved.
    """
    branch, new = RefName(wanted.branch), CommitId(wanted.new)
    old = check(layout, refs, branch, new)
    if old == new:
        return old
    spot = _free(layout, refs, branch, old, "land")
    if spot is not None and old is not None:
        checkout_move.move(spot, Move(branch, old, new, wanted.run, wanted.message), is_ours)
    else:
        _moved(refs, branch, new, old, "land")
    return old


def take_back(layout: Layout, refs: Refs, wanted: Move) -> None:
    """Moves a branch from `old` back to `new`, an ancestor of it, with its checkout; without `new` the branch goes.

    Raises LandingRefused; then nothing moved.
    """
    branch, now = RefName(wanted.branch), CommitId(wanted.old)
    if refs.read(branch) != now:
        raise LandingRefused(
            f"{branch.short} is not at {now[:12]} any more: something came after the landing",
            hint=f"`git log {now[:12]}..{branch.short}` shows what; `git revert` takes single commits back",
            branch=branch,
        )
    spot = _free(layout, refs, branch, now, "undo")
    if wanted.new:
        if spot is not None:
            checkout_move.move(spot, wanted, never_ours)
        else:
            _moved(refs, branch, CommitId(wanted.new), now, "undo")
        return
    if spot is not None:
        raise LandingRefused(
            f"the landing made {branch.short}, and it is checked out in {spot.root}",
            hint="check out another branch there, then undo",
            branch=branch,
        )
    try:
        refs.delete(branch, now)
    except RefMoved as moved:
        raise LandingRefused(f"{branch.short} moved meanwhile", hint="look at it and undo again") from moved


def remains(layout: Layout) -> list[tuple[Checkout, Move]]:
    """Moves of checkouts that a dead process left, or that one is making now."""
    return [(spot, left) for spot in _begun(layout) if (left := checkout_move.unfinished(spot)) is not None]


def settle(layout: Layout) -> list[Move]:
    """Finishes or takes back every move that a dead process left; raises Busy where one is at work."""
    return [left for spot in _begun(layout) if (left := checkout_move.settle(spot)) is not None]


def _begun(layout: Layout) -> list[Checkout]:
    found = (git_dir for git_dir in _git_dirs(layout) if (git_dir / checkout_move.FOLDER).exists())
    return [Checkout(_root(layout, git_dir), git_dir, layout.common_dir) for git_dir in found]


def _moved(refs: Refs, branch: RefName, new: CommitId, old: CommitId | None, verb: Verb) -> None:
    try:
        refs.move(branch, new, old)
    except RefMoved as moved:
        raise LandingRefused(f"{branch.short} moved meanwhile", hint=f"look at it and {verb} again") from moved


def _contains(layout: Layout, new: CommitId, old: CommitId) -> bool:
    answer = Git(layout.common_dir).run("merge-base", "--is-ancestor", old, new, ok=(0, 1))
    return answer.code == 0


def _free(layout: Layout, refs: Refs, branch: RefName, old: CommitId | None, verb: Verb) -> Checkout | None:
    """The checkout that the branch is checked out in; raises LandingRefused while git is doing something with it."""
    for git_dir in _git_dirs(layout):
        if branch in _claimed(git_dir):
            raise _under_way(branch, "a rebase or a bisection", _root(layout, git_dir), verb)
    spots = _checkouts(layout, refs, branch)
    if len(spots) > 1:
        places = ", ".join(str(spot.root) for spot in spots)
        raise LandingRefused(f"{branch.short} is checked out in {len(spots)} places: {places}", hint="keep one of them")
    for spot in spots:
        for name, what in _UNDER_WAY.items():
            if (spot.git_dir / name).exists():
                raise _under_way(branch, what, spot.root, verb)
        if old is None:
            raise LandingRefused(
                f"{branch.short} has no commit, but is checked out in {spot.root}",
                hint="check out another branch there, or say --into BRANCH",
            )
    return spots[0] if spots else None


def _under_way(branch: RefName, what: str, where: Path, verb: Verb) -> LandingRefused:
    return LandingRefused(
        f"{where} cannot take {branch.short}: {what} of it is under way there",
        hint=f"finish or abort it (see `git status` there), then {verb} again",
        branch=branch,
    )


def _claimed(git_dir: Path) -> Iterator[str]:
    """Branches that a rebase or a bisection in this checkout will come back to."""
    for name in ("rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs", "BISECT_START"):
        for line in _lines(git_dir / name):
            yield line
            yield f"refs/heads/{line}"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    except OSError:
        return []


def _git_dirs(layout: Layout) -> list[Path]:
    """Of every checkout of this repository: the main one's, and those of linked worktrees."""
    return [layout.common_dir, *sorted((layout.common_dir / "worktrees").glob("*"))]


def _root(layout: Layout, git_dir: Path) -> Path:
    if git_dir == layout.git_dir.resolve():
        return layout.root
    named = _lines(git_dir / "gitdir")
    return Path(named[0]).parent if named else git_dir.parent


def _checkouts(layout: Layout, refs: Refs, branch: RefName) -> list[Checkout]:
    """Directories that have the branch checked out and exist."""
    found = {layout.root: layout.git_dir} if refs.head_branch() == branch else {}
    listed = Git(layout.common_dir).run("worktree", "list", "--porcelain", "-z")
    for block in listed.out.split(b"\0\0"):
        lines = block.split(b"\0")
        path = Path(os.fsdecode(lines[0].removeprefix(b"worktree ")))
        # For a submodule git lists the git dir itself where the main checkout should be.
        if b"branch " + branch.encode() in lines and path != layout.root and os.path.lexists(path / ".git"):
            found[path] = _git_dir(path)
    return [Checkout(root, git_dir, layout.common_dir) for root, git_dir in found.items()]


def _git_dir(checkout: Path) -> Path:
    """Where the checkout's own HEAD and index are."""
    entry = checkout / ".git"
    if entry.is_dir():
        return entry
    target = os.fsdecode(entry.read_bytes()).removeprefix("gitdir:").strip()
    return (checkout / target).resolve()
