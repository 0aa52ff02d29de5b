"""Each stage of a step against the git command that does the same: workspace, snapshot of five files, merge."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

from bench.places import Place
from bench.timing import Comparison, Contender, Spent, compare, spend
from fixtures import repos
from harness.model.ids import CommitId, RunId
from harness.vcs.repository import Repository

RUN = RunId("stages")
OURS = "orchestrix"
EDITS = 5


def measure(place: Place, rounds: int) -> dict[str, Comparison]:
    """One comparison for each stage, by the git command that it is measured against."""
    os.environ["HOME"] = str(place.root)
    repo = place.fresh("stages")
    vcs = Repository.discover(repo, place.root / ".stages")
    kind = vcs.choose_workspaces("auto")
    start = vcs.resolve("HEAD")
    vcs.open_workspace(RUN, "warm", start, None)
    numbers = itertools.count()

    def git(folder: Path, *args: str) -> Spent:
        return spend(["git", *args], folder, place.env)

    def add() -> Spent:
        folder = place.root / f"worktree{next(numbers)}"
        return git(repo, "worktree", "add", "--quiet", "--detach", str(folder))

    def opened() -> Spent:
        return timed(lambda: vcs.open_workspace(RUN, str(next(numbers)), start, None))

    def commit() -> Spent:
        folder = place.root / f"worktree{next(numbers)}"
        repos.git(repo, "worktree", "add", "--quiet", "--detach", str(folder))
        edit(folder, next(numbers))
        return spend(["sh", "-c", "git add --all && git commit --quiet --message work"], folder, place.env)

    def snapshot() -> Spent:
        workspace = vcs.open_workspace(RUN, str(next(numbers)), start, None)
        edit(workspace.path, next(numbers))
        return timed(lambda: vcs.snapshot(workspace, "work", 1))

    sides = [taken(vcs, start, next(numbers)) for _ in range(2)]

    def merge_by_git() -> Spent:
        repos.git(repo, "reset", "--quiet", "--hard", sides[0])
        return git(repo, "merge", "--quiet", "--no-ff", "--no-edit", sides[1])

    def merge() -> Spent:
        fresh = taken(vcs, start, next(numbers))
        return timed(lambda: vcs.commit(vcs.merge(sides[0], fresh, start).tree, [sides[0], fresh], "m", 1))

    pairs: dict[str, tuple[Contender, Contender, float]] = {
        "git worktree add": (add, opened, 1 / 20),
        "git add --all && git commit": (commit, snapshot, 1 / 10),
        "git merge --no-ff": (merge_by_git, merge, 1 / 15),
    }
    ours = f"{OURS} ({kind.name})"
    found = {
        name: compare({name: theirs, ours: mine}, {ours: limit} if kind.name == "overlay" else {}, rounds)
        for name, (theirs, mine, limit) in pairs.items()
    }
    vcs.forget_run(RUN)
    return found


def edit(folder: Path, number: int) -> None:
    """One new file and four edits, of a size that git cannot take for the old one."""
    (folder / f"new{number}.txt").write_text(f"{number}\n")
    for path in sorted((folder / "pkg000").iterdir())[number % 40 : number % 40 + EDITS - 1]:
        path.write_text(f"edited {number}\n" * 3)


def taken(vcs: Repository, start: CommitId, number: int) -> CommitId:
    """A commit that touches a folder of its own."""
    workspace = vcs.open_workspace(RUN, f"side{number}", start, None)
    (workspace.path / f"side{number}").mkdir()
    (workspace.path / f"side{number}" / "file.txt").write_text("side\n")
    return vcs.snapshot(workspace, "side", 1).commit


def timed(work: Callable[[], object]) -> Spent:
    began, before = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - began, time.process_time() - before)
