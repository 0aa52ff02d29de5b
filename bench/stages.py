"""Each stage of a step against the git command that does the same: workspace, snapshot of five files, merge."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.ground import Ground
from bench.places import Place, Task
from bench.samples import Sample
from bench.timing import Comparison, Spent, Turn, compare, spend
from fixtures import repos
from harness.model.ids import CommitId, RunId
from harness.vcs.repository import Repository

RUN = RunId("stages")
OURS = "orchestrix"
ADD, COMMIT, MERGE = "git worktree add", "git add --all && git commit", "git merge --no-ff"


def measure(sample: Sample, ground: Ground, rounds: int) -> dict[str, Comparison]:
    """One comparison for each stage, by the git command that it is measured against."""
    place = Place.made(Task(sample, 2), ground.folder())
    with _home(place.root):
        return _measure(place, ground, rounds)


def _measure(place: Place, ground: Ground, rounds: int) -> dict[str, Comparison]:
    repo = place.repo
    vcs = Repository.discover(repo, ground.folder())
    kind = vcs.choose_workspaces("auto")
    start = vcs.resolve("HEAD")
    ground.at_end(lambda: vcs.forget_run(RUN))
    vcs.open_workspace(RUN, "warm", start, None)
    numbers = itertools.count()
    worktrees: list[Path] = []

    def timed(work: Callable[[], object]) -> Spent:
        ground.settle()
        began, before = time.perf_counter(), time.process_time()
        work()
        return Spent(time.perf_counter() - began, time.process_time() - before)

    def add() -> Spent:
        worktrees.append(ground.folder() / "worktree")
        return spend(["git", "worktree", "add", "--quiet", "--detach", worktrees[-1]], repo, place.env)

    def opened() -> Spent:
        return timed(lambda: vcs.open_workspace(RUN, str(next(numbers)), start, None))

    def commit() -> Spent:
        folder = worktrees.pop()
        edit(folder, place.task)
        return spend(["sh", "-c", "git add --all && git commit --quiet --message work"], folder, place.env)

    def snapshot() -> Spent:
        workspace = vcs.open_workspace(RUN, str(next(numbers)), start, None)
        edit(workspace.path, place.task)
        return timed(lambda: vcs.snapshot(workspace, "work", 1))

    sides = [taken(vcs, start, next(numbers)) for _ in range(2)]

    def merge_by_git() -> Spent:
        repos.git(repo, "reset", "--quiet", "--hard", sides[0])
        return spend(["git", "merge", "--quiet", "--no-ff", "--no-edit", sides[1]], repo, place.env)

    def merge() -> Spent:
        fresh = taken(vcs, start, next(numbers))
        return timed(lambda: vcs.commit(vcs.merge(sides[0], fresh, start).tree, [sides[0], fresh], "m", 1))

    # In this order: what is committed are the worktrees that were added.
    pairs: dict[str, tuple[Turn, Turn]] = {ADD: (add, opened), COMMIT: (commit, snapshot), MERGE: (merge_by_git, merge)}
    ours = f"{OURS}, {kind.name}"
    return {name: compare({name: theirs, ours: mine}, name, {}, rounds) for name, (theirs, mine) in pairs.items()}


def edit(folder: Path, task: Task) -> None:
    """One new file and four edits, of a size that git cannot take for the old one."""
    (one, two, three), (_, four, five) = task.written
    for name in (one, two, three, four, five):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("edited\n" * 3)


def taken(vcs: Repository, start: CommitId, number: int) -> CommitId:
    """A commit that touches a folder of its own."""
    workspace = vcs.open_workspace(RUN, f"side{number}", start, None)
    (workspace.path / f"side{number}").mkdir()
    (workspace.path / f"side{number}" / "file.txt").write_text("side\n")
    return vcs.snapshot(workspace, "side", 1).commit


@contextlib.contextmanager
def _home(folder: Path) -> Iterator[None]:
    """Nothing of the user's configuration in this process either."""
    before = os.environ["HOME"]
    os.environ["HOME"] = str(folder)
    try:
        yield
    finally:
        os.environ["HOME"] = before
