"""Fresh workspaces get `.env` and its kin, and nothing of that counts as work."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ConfigInvalid, NotFound
from harness.model.changes import Change, Kind
from harness.model.ids import TaskId, work_branch
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout

BRANCH = work_branch(RUN, TaskId("0"))


@pytest.fixture(params=["checkout", "overlay"])
def workspaces(request: pytest.FixtureRequest) -> str:
    """Every claim here holds for both kinds of workspace."""
    return request.param


def test_untracked_files_that_match_are_copied(checkout: Checkout, vcs: Repository) -> None:
    """By .worktreeinclude and by pattern; tracked files, other files and what `!` excepts stay out."""
    checkout.commit("rules", **{".gitignore": ".env*\ncache/\n", ".worktreeinclude": ".env*\n!.env.prod\n*.md\n"})
    for path in (".env", ".env.prod", "sub/.env.local", "cache/a/b", "notes.txt", "other.txt", "new.md"):
        checkout.write(path, path)
    (checkout.root / ".env.link").symlink_to(".env")
    (checkout.root / "sub" / ".env.local").chmod(0o600)
    checkout.write("README.md", "edited by the user\n")
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    vcs.prepare(RUN, "0", ["cache/**", "/notes.txt"], [])
    found = {str(path.relative_to(workspace.path)) for path in workspace.path.rglob("*") if not path.is_dir()}
    assert found - {".git", ".gitignore", ".worktreeinclude", "README.md", "src/app.py", "src/lib.py"} == {
        ".env",
        ".env.link",
        "sub/.env.local",
        "cache/a/b",
        "notes.txt",
        "new.md",
    }
    assert (workspace.path / "README.md").read_text() == "hello\n"
    assert (workspace.path / ".env.link").readlink() == Path(".env")
    assert (workspace.path / "sub" / ".env.local").stat().st_mode & 0o777 == 0o600
    (workspace.path / "work.txt").write_text("work")
    assert vcs.snapshot(workspace, "work", 1).changes == (Change(Kind.ADDED, "work.txt"),)


def test_links_lead_to_the_users_own_files(checkout: Checkout, vcs: Repository) -> None:
    """A linked directory is shared, is no change, and goes without harm when the workspace goes."""
    checkout.write("node_modules/x/index.js", "x")
    workspace = vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    vcs.prepare(RUN, "0", [], ["node_modules", "missing", "src/app.py"])
    assert (workspace.path / "node_modules").readlink() == checkout.root / "node_modules"
    assert not (workspace.path / "src" / "app.py").is_symlink()
    assert vcs.snapshot(workspace, "work", 1).changes == ()
    vcs.remove_workspace(RUN, "0")
    assert (checkout.root / "node_modules" / "x" / "index.js").is_file()


def test_a_link_in_the_tree_does_not_lead_a_copy_outside(checkout: Checkout, vcs: Repository, tmp_path: Path) -> None:
    """A tracked directory link whose target lies outside is not written through."""
    (tmp_path / "outside").mkdir()
    (checkout.root / "dir").symlink_to(tmp_path / "outside")
    checkout.commit("link")
    (checkout.root / "dir").unlink()
    checkout.write("dir/.env", "secret")
    vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    vcs.prepare(RUN, "0", [".env"], ["dir/.env"])
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("path", ["../x", "/etc", "a/../../b", ".git/hooks", ""])
def test_a_link_path_that_leaves_the_checkout_is_refused(vcs: Repository, path: str) -> None:
    """The setting is named."""
    vcs.open_workspace(RUN, "0", vcs.resolve("HEAD"), BRANCH)
    with pytest.raises(ConfigInvalid, match="leaves the checkout"):
        vcs.prepare(RUN, "0", [], [path])


def test_only_an_open_workspace_is_prepared(vcs: Repository) -> None:
    """Order of calls is checked."""
    with pytest.raises(NotFound, match="has no workspace 0"):
        vcs.prepare(RUN, "0", [], [])
