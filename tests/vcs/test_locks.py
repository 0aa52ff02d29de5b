"""What a killed git leaves behind does not block the harness; what a living one holds is respected."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import EnvironmentProblem
from harness.model.ids import CommitId, RefName, TaskId, work_branch
from harness.vcs import locks
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout

REF = work_branch(RUN, TaskId("0"))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE_S", 0.1)


def test_locks_of_a_killed_git_are_taken_away(checkout: Checkout, vcs: Repository) -> None:
    """Also the one over all packed refs, and the half-written file that it guarded."""
    start = vcs.resolve("HEAD")
    lock = vcs.common_dir / f"{REF}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    vcs.move_ref(REF, start, None)
    checkout.git("pack-refs", "--all")
    left = [vcs.common_dir / "packed-refs.lock", vcs.common_dir / "packed-refs.new", lock]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    vcs.delete_ref(REF, start)
    assert vcs.read_ref(REF) is None
    assert [path for path in left if path.exists()] == []


def test_a_lock_that_a_process_has_open_stays(checkout: Checkout, vcs: Repository) -> None:
    """The error names the file; when it is gone, the same call works."""
    lock = vcs.common_dir / f"{REF}.lock"
    lock.parent.mkdir(parents=True)
    with lock.open("w"), pytest.raises(EnvironmentProblem, match=f"{REF} cannot be moved: .*work.lock is in the way"):
        vcs.move_ref(REF, vcs.resolve("HEAD"), None)
    assert lock.exists()
    lock.unlink()
    vcs.move_ref(REF, vcs.resolve("HEAD"), None)


@pytest.mark.parametrize("name", [f"{REF}.lock", "packed-refs.lock"])
def test_a_lock_that_the_users_git_holds_for_long_is_waited_for(
    checkout: Checkout, vcs: Repository, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gc of a large repository packs refs for longer than one look at the lock takes; the move succeeds after it."""
    start = vcs.resolve("HEAD")
    vcs.move_ref(REF, start, None)
    checkout.git("pack-refs", "--all")
    lock = vcs.common_dir / name
    lock.parent.mkdir(parents=True, exist_ok=True)
    looks = []
    with lock.open("w"):
        look = locks.remove_abandoned

        def released_at_the_third(*paths: Path) -> bool:
            looks.append(paths)
            if len(looks) == 3:
                lock.unlink()
            return look(*paths)

        monkeypatch.setattr(locks, "remove_abandoned", released_at_the_third)
        vcs.delete_ref(REF, start)
    assert (vcs.read_ref(REF), len(looks)) == (None, 3)


def test_a_lock_on_a_branch_of_the_user_is_theirs(checkout: Checkout, vcs: Repository) -> None:
    """However old it is: only the person knows what was under way there."""
    main = RefName("refs/heads/main")
    old = vcs.resolve("HEAD")
    new = vcs.commit(vcs.tree_of(old), [CommitId(old)], "next", 1)
    lock = vcs.common_dir / "refs/heads/main.lock"
    lock.touch()
    with pytest.raises(EnvironmentProblem, match=r"main\.lock is in the way") as caught:
        vcs.move_ref(main, new, old)
    assert caught.value.hint == "if no git is at work here, remove that file, then resume"
    assert lock.exists()
