"""Landing moves a branch forward, with its checkout, or refuses and leaves everything as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import Exit, LandingRefused
from harness.model.ids import CommitId, RefName
from harness.vcs.repository import Repository
from tests.vcs.conftest import Checkout

MAIN = RefName("refs/heads/main")


@pytest.fixture
def ahead(vcs: Repository) -> CommitId:
    """A commit on top of main that changes one file and adds one."""
    start = vcs.resolve("main")
    tree = vcs.with_file(vcs.tree_of(start), "README.md", b"landed\n")
    return vcs.commit(vcs.with_file(tree, "new/file", b"new\n"), [start], "result", 1)


def refused(vcs: Repository, branch: RefName, new: CommitId) -> LandingRefused:
    before = vcs.read_ref(branch)
    with pytest.raises(LandingRefused) as caught:
        vcs.fast_forward(branch, new)
    assert vcs.read_ref(branch) == before
    assert caught.value.exit_code == Exit.CONFLICT
    assert caught.value.hint
    return caught.value


def test_the_checked_out_branch_takes_its_checkout_along(checkout: Checkout, vcs: Repository, ahead: CommitId) -> None:
    """Files, index and branch arrive together; no hook runs; doing it again changes nothing."""
    hook = checkout.root / ".git" / "hooks" / "post-merge"
    hook.write_text(f"#!/bin/sh\ntouch {checkout.root}/hooked\n")
    hook.chmod(0o755)
    start = vcs.resolve("main")
    assert vcs.fast_forward(MAIN, ahead) == start
    assert vcs.fast_forward(MAIN, ahead) == ahead
    assert checkout.git("status", "--porcelain") == ""
    assert (checkout.root / "new" / "file").read_text() == "new\n"
    assert checkout.git("rev-parse", "main", "HEAD").split() == [ahead, ahead]


def test_changes_that_do_not_collide_survive(checkout: Checkout, vcs: Repository, ahead: CommitId) -> None:
    """Staged, unstaged and untracked work elsewhere stays as it is."""
    checkout.write("src/app.py", "mine\n")
    checkout.write("src/lib.py", "staged\n")
    checkout.git("add", "src/lib.py")
    checkout.write("untracked", "x")
    vcs.fast_forward(MAIN, ahead)
    assert checkout.git("status", "--porcelain").splitlines() == ["M src/app.py", "M  src/lib.py", "?? untracked"]


@pytest.mark.parametrize("kind", ["edited", "staged", "untracked", "ignored"])
def test_a_file_that_would_be_overwritten_stops_it(
    checkout: Checkout, vcs: Repository, ahead: CommitId, kind: str
) -> None:
    """The file is named, nothing moves, and its content stays; ignored files count too."""
    path = "README.md" if kind in ("edited", "staged") else "new/file"
    checkout.write(path, "precious\n")
    if kind == "staged":
        checkout.git("add", path)
    if kind == "ignored":
        (checkout.root / ".git" / "info" / "exclude").write_text("new/\n")
    before = checkout.git("status", "--porcelain", "--ignored")
    problem = refused(vcs, MAIN, ahead)
    assert problem.message == f"landing would overwrite {path} in {checkout.root}"
    assert problem.details["paths"] == [path]
    assert checkout.git("status", "--porcelain", "--ignored") == before
    assert (checkout.root / path).read_text() == "precious\n"


def test_a_branch_that_went_elsewhere_is_not_overwritten(checkout: Checkout, vcs: Repository, ahead: CommitId) -> None:
    """A commit of the user on top of the base means: not a fast-forward."""
    checkout.commit("mine", **{"mine.txt": "x"})
    assert "has commits that" in refused(vcs, MAIN, ahead).message


def test_a_branch_that_is_nowhere_checked_out_just_moves(checkout: Checkout, vcs: Repository, ahead: CommitId) -> None:
    """Or is made, when it does not exist; the user's checkout is not touched."""
    start = vcs.resolve("main")
    checkout.git("branch", "other")
    assert vcs.fast_forward(RefName("refs/heads/other"), ahead) == start
    assert vcs.fast_forward(RefName("refs/heads/brand/new"), ahead) is None
    assert checkout.git("rev-parse", "other", "brand/new", "main").split() == [ahead, ahead, start]
    assert checkout.git("status", "--porcelain") == ""


def test_a_branch_in_another_worktree_moves_there(
    checkout: Checkout, vcs: Repository, ahead: CommitId, tmp_path: Path
) -> None:
    """The checkout that has the branch follows, wherever it is."""
    side = tmp_path / "si de"
    checkout.git("worktree", "add", "--quiet", "-b", "side", str(side))
    vcs.fast_forward(RefName("refs/heads/side"), ahead)
    assert checkout.git("status", "--porcelain", cwd=side) == ""
    assert (side / "README.md").read_text() == "landed\n"
    assert (checkout.root / "README.md").read_text() == "hello\n"


def test_a_submodule_is_a_checkout_like_any_other(checkout: Checkout, vcs: Repository, tmp_path: Path) -> None:
    """Its git dir lies elsewhere; its files follow all the same."""
    outer = Checkout(tmp_path / "outer")
    outer.root.mkdir()
    outer.git("init", "--quiet")
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(checkout.root), "sub")
    inner = Repository.discover(outer.root / "sub", tmp_path / "state")
    start = inner.resolve("HEAD")
    new = inner.commit(inner.with_file(inner.tree_of(start), "new", b"x"), [start], "new", 1)
    assert inner.fast_forward(MAIN, new) == start
    assert outer.git("status", "--porcelain", cwd=outer.root / "sub") == ""
    assert (outer.root / "sub" / "new").is_file()


def test_an_unfinished_merge_or_a_lock_stops_it(checkout: Checkout, vcs: Repository, ahead: CommitId) -> None:
    """What is going on in the checkout is finished by its owner first."""
    (checkout.root / ".git" / "index.lock").touch()
    assert "index.lock" in refused(vcs, MAIN, ahead).message
    (checkout.root / ".git" / "index.lock").unlink()
    (checkout.root / ".git" / "MERGE_HEAD").write_text(f"{vcs.resolve('main')}\n")
    assert "cannot take main" in refused(vcs, MAIN, ahead).message
    assert (checkout.root / "README.md").read_text() == "hello\n"
