"""Checkouts that are used again: the next workspace is what a fresh checkout would be, whatever the step before did."""

from __future__ import annotations

import os
import random
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.model import limits
from harness.model.changes import Workspace
from harness.vcs import checkout_pool
from harness.vcs.disk import DiskSpace
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout, vouch_for_all
from tests.vcs.test_layered import NAMES, RULES, edit

MANY = [f"many/{folder}/f{number}.txt" for folder in "abc" for number in range(60)]


@pytest.fixture
def project(checkout: Checkout) -> Checkout:
    """Enough files for git to write them with several workers."""
    for name in (*NAMES[:7], *MANY):
        checkout.write(name, f"{name}\n")
    checkout.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    (checkout.root / "link").symlink_to("a.txt")
    checkout.git("add", "--force", "--all")
    checkout.commit("files")
    return checkout


def used(vcs: Repository, name: str, start: str = "HEAD") -> Workspace:
    return vcs.open_workspace(RUN, name, vcs.resolve(start), None)


def retired(vcs: Repository, name: str) -> None:
    vcs.retire_workspace(RUN, name)
    vcs._background.settle()


def seen(root: Path) -> dict[str, tuple[object, ...]]:
    """All that a program could find there, but times and inodes."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [root, *root.rglob("*")]:
        status = path.lstat()
        content: object = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        if path.name == ".git":
            content = "leads to the worktree"
        links = 0 if path.is_dir() else status.st_nlink
        owner = status.st_uid, status.st_gid
        attributes = os.listxattr(path, follow_symlinks=False)
        found[str(path.relative_to(root))] = (status.st_mode, links, owner, attributes, content)
    return found


def inodes(workspace: Workspace) -> set[int]:
    return {path.lstat().st_ino for path in workspace.path.rglob("*.txt")}


def vandalise(rng: random.Random, root: Path) -> None:
    """What no honest step does, and what no git command would undo."""
    folders = [root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    folder, file = rng.choice(folders), rng.choice(files)
    act = rng.randrange(9)
    if act == 0:
        folder.chmod(rng.choice([0o700, 0o777, 0o2755, 0o1777]))
    elif act == 1:
        os.setxattr(rng.choice([folder, file]), "user.mark", b"x")
    elif act == 2:
        os.link(file, folder / f"linked{rng.randrange(99)}")
    elif act == 3:
        os.mkfifo(folder / f"pipe{rng.randrange(999)}")
    elif act == 4:
        nested = folder / f"nested{rng.randrange(999)}"
        (nested / ".git").mkdir(parents=True, exist_ok=True)
        (nested / "file.txt").write_text("nested\n")
    elif act == 5 and folder != root:
        folder.rename(f"{folder}.away")
        Path(f"{folder}.away").rename(folder)
    elif act == 6 and folder != root:
        shutil.rmtree(folder)
        folder.symlink_to(root)
    elif act == 7:
        before = file.stat()
        file.write_bytes(bytes(len(file.read_bytes())))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    else:
        file.chmod(rng.choice([0o600, 0o444, 0o777]))


@pytest.mark.parametrize("rules", RULES)
def test_nothing_of_the_step_before_is_left(
    project: Checkout, open_vcs: Callable[[Path], Repository], rules: str
) -> None:
    """Generated work and vandalism, on start points that take turns, right after the checkout; with and without a snapshot."""
    first = project.commit("rules", **RULES[rules])
    second = project.commit("later", **{"a.txt": "later\n", "deep/more.txt": "more\n", "many/a/f1.txt": "later\n"})
    project.git("rm", "--quiet", "-r", "many/b")
    third = project.commit("fewer")
    vcs = open_vcs(project.root)
    fresh = {start: seen(used(vcs, f"fresh{n}", start).path) for n, start in enumerate((first, second, third))}
    for seed in range(40):
        rng, name = random.Random(f"{rules}-{seed}"), str(seed)
        start = rng.choice([first, second, third])
        workspace = used(vcs, name, start)
        assert seen(workspace.path) == fresh[start], f"seed {rules}-{seed}"
        for _ in range(rng.randrange(6)):
            edit(rng, workspace.path)
            vandalise(rng, workspace.path)
        if rng.random() < 0.5:
            vcs.snapshot(workspace, "work", 1)
        retired(vcs, name)


def test_what_nobody_touched_is_not_written_again(project: Checkout, vcs: Repository) -> None:
    """The point of it: the files are the very same ones, in a worktree that git calls clean."""
    workspace = used(vcs, "0")
    vouch_for_all(workspace)
    before = inodes(workspace)
    (workspace.path / "a.txt").write_text("edited\n")
    retired(vcs, "0")
    start = project.commit("later", **{"b.txt": "b\n", "many/a/f1.txt": "later\n"})
    again = used(vcs, "1", start)
    assert len(before - inodes(again)) <= 2
    assert project.git("status", "--porcelain", cwd=again.path) == ""
    assert project.git("diff", "HEAD", cwd=again.path) == ""
    (again.path / "many" / "a" / "f2.txt").write_text("work\n")
    assert [change.path for change in vcs.snapshot(again, "s", 1).changes] == ["many/a/f2.txt"]


def test_a_step_may_outlive_its_program_without_a_sandbox(project: Checkout, vcs: Repository) -> None:
    """Then, and where workspaces are kept, every step gets files of its own."""
    vcs.choose_workspaces("checkout", "without a sandbox")
    used(vcs, "0")
    retired(vcs, "0")
    assert not (vcs.state_dir / RUN / "spare").exists()
    assert list((vcs.state_dir / RUN / "trees").iterdir()) == []


def test_other_attributes_need_another_checkout(project: Checkout, vcs: Repository) -> None:
    """The same content becomes another file; a spare written by others stays where it is."""
    used(vcs, "0")
    retired(vcs, "0")
    start = project.commit("attributes", **{".gitattributes": "*.txt text eol=crlf\n"})
    assert (used(vcs, "1", start).path / "a.txt").read_bytes() == b"a.txt\r\n"
    assert [spare.files.name for spare in vcs._pool._spare[vcs.state_dir / RUN]] == ["0"]


def test_a_tree_with_submodules_is_never_used_again(project: Checkout, vcs: Repository) -> None:
    """Their directories are nobody's files."""
    plain = project.git("rev-parse", "HEAD")
    project.git("update-index", "--add", "--cacheinfo", f"160000,{plain},module")
    project.git("commit", "--quiet", "--message", "module")
    start = project.git("rev-parse", "HEAD")
    used(vcs, "0", start)
    retired(vcs, "0")
    used(vcs, "1", plain)
    retired(vcs, "1")
    assert [spare.files.name for spare in vcs._pool._spare[vcs.state_dir / RUN]] == ["1"]
    assert seen(used(vcs, "2", start).path)["module"][-1] is None


def test_only_so_many_are_put_by(project: Checkout, vcs: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others go, and all go with the run."""
    monkeypatch.setattr(limits, "SPARE_CHECKOUTS", 2)
    for name in "0123":
        used(vcs, name)
    for name in "0123":
        retired(vcs, name)
    run_dir = vcs.state_dir / RUN
    assert len(list((run_dir / "spare").glob("*.index"))) == 2
    assert list((run_dir / "trees").iterdir()) == []
    vcs.forget_run(RUN)
    assert not run_dir.exists()
    assert vcs._pool._spare == {}


def test_none_is_put_by_where_the_disk_is_short(
    project: Checkout, vcs: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DiskSpace for the user comes first."""
    used(vcs, "0"), used(vcs, "1")
    retired(vcs, "0")
    monkeypatch.setattr(DiskSpace, "is_low", lambda _: True)
    retired(vcs, "1")
    assert not list((vcs.state_dir / RUN / "spare").iterdir())
    assert vcs.workspaces() == []


def test_what_a_dead_coordinator_put_by_is_not_trusted(
    project: Checkout, open_vcs: Callable[[Path], Repository]
) -> None:
    """It may have died while it was taking one over."""
    dead = open_vcs(project.root)
    used(dead, "0")
    retired(dead, "0")
    (dead.state_dir / RUN / "spare" / "0" / "a.txt").write_text("half\n")
    vcs = open_vcs(project.root)
    assert (used(vcs, "1").path / "a.txt").read_text() == "a.txt\n"
    retired(vcs, "1")
    assert {path.name for path in (vcs.state_dir / RUN / "spare").iterdir()} == {"1", "1.index"}


def test_the_folder_of_spares_stays_while_they_come_and_go(project: Checkout, vcs: Repository) -> None:
    """Only what others left in it goes, once."""
    folders = set()
    for name in "012":
        used(vcs, name)
        retired(vcs, name)
        folders.add((vcs.state_dir / RUN / "spare").stat().st_ino)
    assert len(folders) == 1


def test_a_spare_that_cannot_be_looked_at_is_let_go(project: Checkout, vcs: Repository) -> None:
    """An index of another kind, a directory that somebody changed: the checkout is then a fresh one."""
    for number, harm in enumerate((_cut, _open_to_all, _mark)):
        used(vcs, f"{number}a")
        retired(vcs, f"{number}a")
        (spare,) = vcs._pool._spare[vcs.state_dir / RUN]
        harm(spare)
        again = used(vcs, f"{number}b")
        assert project.git("status", "--porcelain", cwd=again.path) == ""
        assert stat.S_IMODE(again.path.stat().st_mode) == 0o700
        assert os.listxattr(again.path) == []
        assert not spare.files.exists()
        vcs.remove_workspace(RUN, f"{number}b")


def _cut(spare: checkout_pool._Spare) -> None:
    os.truncate(spare.index, 40)


def _open_to_all(spare: checkout_pool._Spare) -> None:
    spare.files.chmod(0o777)


def _mark(spare: checkout_pool._Spare) -> None:
    os.setxattr(spare.files, "user.mark", b"x")
