"""Workspaces: whole or absent, whatever was interrupted, and never a step outside."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.errors import EnvironmentProblem, UsageError
from harness.model.ids import RefName, RunId, TaskId, work_branch
from harness.vcs import overlay
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout, recorded

BRANCH = work_branch(RUN, TaskId("0"))


@pytest.fixture(params=["checkout", "overlay"])
def workspaces(request: pytest.FixtureRequest) -> str:
    """Every claim here holds for both kinds of workspace."""
    return request.param


def test_git_works_in_a_workspace_and_the_repository_knows_nothing_of_it(checkout: Checkout, vcs: Repository) -> None:
    """Status is clean and the branch is checked out; among the user's worktrees there is none of ours."""
    start = vcs.resolve("HEAD")
    workspace = vcs.open_workspace(RUN, "0", start, BRANCH)
    assert recorded(workspace.path) == vcs.workspace_path(RUN, "0")
    assert vcs.find_workspace(RUN, "0") == workspace
    assert checkout.git("status", "--porcelain=v2", "--branch", cwd=workspace.path).splitlines() == [
        f"# branch.oid {start}",
        f"# branch.head {BRANCH.short}",
    ]
    for where in (checkout.root, workspace.path):
        assert checkout.git("worktree", "list", "--porcelain", cwd=where).count("worktree ") == 1
        assert checkout.git("fsck", "--strict", "--no-dangling", cwd=where) == ""
    assert not (vcs.common_dir / "worktrees").exists()
    assert not [path for path in vcs.common_dir.iterdir() if path.name.startswith("orchestrix")]


def test_a_detached_workspace(checkout: Checkout, vcs: Repository) -> None:
    """Gate checkouts need no branch."""
    workspace = vcs.open_workspace(RUN, "gate", vcs.resolve("HEAD"), None)
    assert checkout.git("branch", "--show-current", cwd=workspace.path) == ""
    assert checkout.git("status", "--porcelain", cwd=workspace.path) == ""


def test_only_the_tree_is_in_the_agents_reach(vcs: Repository) -> None:
    """Private index, card and git dir stand beside the tree, and nobody else may enter."""
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    assert not workspace.private_index.is_relative_to(workspace.path)
    for directory in (vcs.state_dir, vcs.state_dir / RUN, workspace.path.parent, workspace.path):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_opening_again_starts_afresh_and_moves_the_branch(checkout: Checkout, vcs: Repository) -> None:
    """A left-over workspace of the same name goes; the branch is where the new one starts."""
    first = vcs.resolve("HEAD")
    old = vcs.open_workspace(RUN, "0", first, BRANCH)
    (old.path / "left-over").write_text("x")
    second = checkout.commit("second", **{"new.txt": "new"})
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve(second), BRANCH)
    assert sorted(path.name for path in workspace.path.iterdir()) == [".git", "README.md", "new.txt", "src"]
    assert vcs.read_ref(BRANCH) == second


def test_another_process_can_take_over(
    checkout: Checkout, vcs: Repository, open_vcs: Callable[[Path], Repository]
) -> None:
    """A second coordinator finds the workspace, snapshots it with the settings of the first, and removes it."""
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    (workspace.path / "f").write_text("f")
    checkout.git("config", "core.autocrlf", "true")
    again = open_vcs(checkout.root)
    found = again.find_workspace(RUN, "0")
    assert found == workspace
    assert again.snapshot(found, "work", 1) == vcs.snapshot(workspace, "work", 1)
    assert again.workspaces() == [(RUN, "0", recorded(workspace.path))]
    again.remove_workspace(RUN, "0")
    assert (again.workspaces(), vcs.find_workspace(RUN, "0")) == ([], None)
    again.forget_run(RUN)
    assert not (vcs.state_dir / RUN).exists()


def test_removal_leaves_nothing_and_removes_nothing_else(checkout: Checkout, vcs: Repository, tmp_path: Path) -> None:
    """Links out are removed, not followed; closed directories are opened; the user's own worktrees stay."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    checkout.git("worktree", "add", "--quiet", str(tmp_path / "users-own"))
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    (workspace.path / "link").symlink_to(outside)
    (workspace.path / "src" / "link").symlink_to(outside)
    (workspace.path / "closed" / "inner").mkdir(parents=True)
    (workspace.path / "closed" / "inner" / "f").write_text("x")
    (workspace.path / "closed" / "inner").chmod(0o400)
    (workspace.path / "closed").chmod(0)
    vcs.remove_workspace(RUN, "0")
    vcs.remove_workspace(RUN, "0")
    assert (outside / "precious").is_file()
    assert sorted(path.name for path in (vcs.common_dir / "worktrees").iterdir()) == ["users-own"]
    assert [path for path in (vcs.state_dir / RUN).rglob("*") if "git" not in path.parts and path.is_file()] == []
    assert not [path for path in vcs.common_dir.iterdir() if path.name.startswith("orchestrix")]


def test_a_workspace_replaced_by_a_link_is_only_unlinked(vcs: Repository, tmp_path: Path) -> None:
    """An agent that swaps its whole tree for a link to the user's files loses the link, nothing more."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    overlay.unmount(vcs._place(RUN, "0"))
    shutil.rmtree(workspace.path)
    workspace.path.symlink_to(outside)
    vcs.remove_workspace(RUN, "0")
    assert (outside / "precious").is_file()
    assert not os.path.lexists(workspace.path)


def _interruptions(vcs: Repository) -> list[str]:
    """Each part of a workspace; all those from one on are missing when the work stopped before it."""
    place = vcs._place(RUN, "0")
    return [
        str(path)
        for path in (
            place.tree,
            place.tree / "src",
            place.index,
            place.refs,
            place.admin,
            place.tree / ".git",
            place.card,
        )
    ]


@pytest.mark.parametrize("done", range(7))
def test_any_half_made_workspace_is_recognised_and_replaced(checkout: Checkout, vcs: Repository, done: int) -> None:
    """After a crash at any point it is not taken for a whole one, is listed, and opens or goes without a fuss."""
    start = vcs.resolve("HEAD")
    for finish in (vcs.remove_workspace, lambda run, name: vcs.open_workspace(run, name, start, BRANCH)):
        vcs.open_workspace(RUN, "0", start, BRANCH)
        overlay.unmount(vcs._place(RUN, "0"))
        if done == 0:
            shutil.rmtree(vcs._place(RUN, "0").layers, ignore_errors=True)
        for path in reversed(_interruptions(vcs)[done:]):
            shutil.rmtree(path, ignore_errors=True) if Path(path).is_dir() else Path(path).unlink(missing_ok=True)
        assert vcs.find_workspace(RUN, "0") is None
        assert [name for _, name, _ in vcs.workspaces()] == (["0"] if done else [])
        finish(RUN, "0")
    assert vcs.find_workspace(RUN, "0") is not None
    assert not [path for path in vcs.common_dir.iterdir() if path.name.startswith("orchestrix")]


def test_a_removal_that_was_interrupted_is_finished(vcs: Repository) -> None:
    """What lies in the trash after a crash goes with the next removal, and is never listed as a workspace."""
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    trash = vcs.state_dir / RUN / "trash" / "0"
    (trash / "pile-x").mkdir(parents=True)
    overlay.unmount(vcs._place(RUN, "0"))
    recorded(workspace.path).rename(trash / "pile-x" / "0")
    vcs.remove_workspace(RUN, "0")
    assert not trash.exists()
    assert vcs.workspaces() == []


def test_many_at_once(checkout: Checkout, vcs: Repository) -> None:
    """24 workspaces opened, snapshot and removed from threads: no failure, no orphan."""
    start = vcs.resolve("HEAD")

    def life(number: int) -> str:
        name = str(number)
        workspace = vcs.open_workspace(RUN, name, start, work_branch(RUN, TaskId(name)))
        (workspace.path / f"file-{name}").write_text(name)
        taken = vcs.snapshot(workspace, name, 1)
        vcs.remove_workspace(RUN, name)
        return taken.changes[0].path

    with ThreadPoolExecutor(24) as pool:
        assert list(pool.map(life, range(24))) == [f"file-{number}" for number in range(24)]
    assert len(vcs.refs_under(f"refs/heads/orchestrix/{RUN}/")) == 24
    assert not (vcs.common_dir / "worktrees").exists()
    assert checkout.git("fsck", "--strict", "--no-dangling") == ""


def test_names_of_two_runs_never_collide(vcs: Repository) -> None:
    """Run `a` with name `1-2` and run `a-1` with name `2` are two worktrees."""
    start = vcs.resolve("HEAD")
    one = vcs.open_workspace(RunId("a"), "1-2", start, None)
    two = vcs.open_workspace(RunId("a-1"), "2", start, None)
    assert one.admin != two.admin
    assert [(run, name) for run, name, _ in vcs.workspaces()] == [("a", "1-2"), ("a-1", "2")]


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "x.lock", "a..b", "x" * 200, "ä", "a b"])
def test_a_name_that_could_lead_elsewhere_is_refused(vcs: Repository, name: str) -> None:
    """Names become file names and worktree ids."""
    with pytest.raises(UsageError, match="is not a workspace name"):
        vcs.workspace_path(RUN, name)


def test_a_branch_of_the_user_that_is_in_the_way_is_named(checkout: Checkout, vcs: Repository) -> None:
    """A branch called `orchestrix` leaves no room for ours: the message says which one and what to do."""
    checkout.git("branch", "orchestrix")
    with pytest.raises(EnvironmentProblem) as caught:
        vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    assert caught.value.message == f"{BRANCH} cannot be made: refs/heads/orchestrix is in the way"
    assert "git branch -m orchestrix" in caught.value.hint


def test_a_checkout_that_is_itself_a_linked_worktree(
    checkout: Checkout, tmp_path: Path, open_vcs: Callable[[Path], Repository]
) -> None:
    """A run may start from any checkout of a repository."""
    checkout.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    vcs = open_vcs(tmp_path / "side" / "src")
    assert (vcs.root, vcs.common_dir) == (tmp_path / "side", checkout.root / ".git")
    assert vcs.head_branch() == RefName("refs/heads/side")
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    assert checkout.git("status", "--porcelain", cwd=workspace.path) == ""


def test_a_workspace_of_an_earlier_version_is_kept_and_removed(checkout: Checkout, vcs: Repository) -> None:
    """It was a linked worktree, with the agent's branch in the user's repository and the objects elsewhere."""
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    (workspace.path / "own.txt").write_text("own")
    checkout.git("add", "own.txt", cwd=workspace.path)
    checkout.git("commit", "--quiet", "--message", "own", cwd=workspace.path)
    tip = checkout.git("rev-parse", "HEAD", cwd=workspace.path)
    place = vcs._place(RUN, "0")
    (place.admin / "objects").rename(place.private / "objects")
    place.entry.parent.mkdir()
    place.entry.mkdir()
    for name in ("HEAD", "index"):
        (place.admin / name).rename(place.entry / name)
    (place.entry / "commondir").write_text("../..\n")
    (place.entry / "gitdir").write_text(f"{workspace.path}/.git\n")
    (workspace.path / ".git").write_text(f"gitdir: {place.entry}\n")
    shutil.rmtree(place.admin)
    place.refs.unlink()
    (vcs.common_dir / BRANCH).write_text(f"{tip}\n")
    found = vcs.find_workspace(RUN, "0")
    assert found is not None
    taken = vcs.snapshot(found, "work", 1)
    assert (taken.agent_commits, [change.path for change in taken.changes]) == ((tip,), ["own.txt"])
    assert checkout.git("fsck", "--strict", "--no-dangling") == ""
    vcs.remove_workspace(RUN, "0")
    assert not (vcs.common_dir / "worktrees").exists()
    assert vcs.workspaces() == []


def test_a_shallow_clone_is_good_enough(
    checkout: Checkout, tmp_path: Path, open_vcs: Callable[[Path], Repository]
) -> None:
    """History that is not there is not asked for."""
    checkout.commit("second", **{"b.txt": "b"})
    checkout.git("clone", "--quiet", "--depth=1", checkout.root.as_uri(), str(tmp_path / "shallow"))
    vcs = open_vcs(tmp_path / "shallow")
    start = vcs.resolve("HEAD")
    made = []
    for name in ("0", "1"):
        workspace = vcs.open_workspace(RUN, name, start, None)
        (workspace.path / f"f{name}").write_text(name)
        made.append(vcs.snapshot(workspace, name, 1).commit)
    assert vcs.merge(made[0], made[1], start).tree is not None
    checkout.git("commit", "--quiet", "--allow-empty", "--message", "own", cwd=workspace.path)
    assert checkout.git("log", "--format=%s", cwd=workspace.path) == "own\nsecond"
    assert vcs.snapshot(workspace, "again", 1).agent_commits == (checkout.git("rev-parse", "HEAD", cwd=workspace.path),)
