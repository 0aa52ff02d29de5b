"""Sparse workspaces: what they hold, and that their snapshot is the start point with their files laid over it."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.model.changes import Change, Kind, Workspace
from harness.model.ids import TaskId, work_branch
from harness.vcs import snapshot
from harness.vcs.repository import Repository
from tests.vcs.conftest import RUN, Checkout, as_a_mere_user

BRANCH = work_branch(RUN, TaskId("0"))
OWNS = ("own/deep/**", "own/*.sh")
INSIDE = ["a.txt", "b.log", "ü", "own/run.sh", "own/deep/d.txt", "own/deep/e.log", "own/deep/er/x y", "own/deep/c.dat"]
OUTSIDE = ["own/near.txt", "own/near.log", "out/a.txt", "out/b.dat", "out/deep/c.log", "other/d.txt", "other/[x] y"]
NEW = ["fresh.txt", "fresh/f.txt", "out/new.txt", "out/new.log", "own/new.dat", "own/deep/new/n.txt"]
LINES = [b"one\n", b"one\r\ntwo\r\n", b"\0bin", b"", b"$Id$\n"]
RULES = {
    "none": {},
    "ignore": {".gitignore": "*.log\n", "own/.gitignore": "*.dat\n!keep\n", "out/.gitignore": "new.txt\n"},
    "attributes": {
        ".gitattributes": "*.txt text eol=crlf\n",
        "own/.gitattributes": "*.dat text eol=crlf\n*.sh ident\n*.log -text\n",
        "out/.gitattributes": "*.txt -text\n*.dat ident\n",
    },
    "auto": {".gitattributes": "* text=auto\n", "own/deep/.gitattributes": "*.txt eol=crlf\n"},
}


@pytest.fixture
def project(checkout: Checkout) -> Checkout:
    """Files at the top, in folders that a step owns, beside them, and elsewhere."""
    for name in [*INSIDE, *OUTSIDE]:
        checkout.write(name, b"one\r\n" if name.endswith(".log") else f"{name}\n$Id$\n")
    checkout.git("add", "--force", "--all")
    checkout.commit("files")
    return checkout


def opened(vcs: Repository, name: str = "0", only: tuple[str, ...] | None = OWNS) -> Workspace:
    return vcs.open_workspace(RUN, name, vcs.resolve("HEAD"), None if name != "0" else BRANCH, only)


def held(workspace: Workspace) -> set[str]:
    found = (path for path in workspace.path.rglob("*") if path.is_symlink() or not path.is_dir())
    return {str(path.relative_to(workspace.path)) for path in found} - {".git"}


def changed(vcs: Repository, workspace: Workspace) -> dict[str, str]:
    return {change.path: change.kind.value for change in vcs.snapshot(workspace, "work", 1).changes}


def write(workspace: Workspace, path: str, content: str = "new\n") -> Path:
    place = workspace.path / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content)
    return place


# What is there


def test_it_holds_what_is_owned_and_the_files_at_the_top(project: Checkout, vcs: Repository) -> None:
    """And nothing else; it says so, also to the coordinator that finds it again."""
    workspace = opened(vcs)
    assert held(workspace) == {*INSIDE, "README.md"}
    assert workspace.sparse
    assert vcs.find_workspace(RUN, "0") == workspace
    assert not opened(vcs, "1", None).sparse


@pytest.mark.parametrize(
    ("only", "also"),
    [
        ((), set()),
        (("out",), {"out/a.txt", "out/b.dat", "out/deep/c.log"}),
        (("other/[x] y",), {"other/[x] y"}),
        (("**/*.dat",), {"out/b.dat", "own/deep/c.dat"}),
        (("missing/**",), set()),
        (("**",), {*OUTSIDE, *INSIDE, "src/app.py", "src/lib.py"}),
    ],
)
def test_it_holds_what_ownership_globs_cover(
    project: Checkout, vcs: Repository, only: tuple[str, ...], also: set[str]
) -> None:
    """In the language of `owns`."""
    at_the_top = {"README.md", "a.txt", "b.log", "ü"}
    assert held(opened(vcs, only=only)) == at_the_top | also


def test_git_in_it_sees_nothing_missing(project: Checkout, vcs: Repository) -> None:
    """Status and diff are clean; a commit of the agent has all files; a file that was left out can be had."""
    workspace = opened(vcs)
    assert project.git("status", "--porcelain", cwd=workspace.path) == ""
    assert project.git("diff", "HEAD", cwd=workspace.path) == ""
    write(workspace, "own/deep/d.txt")
    project.git("rm", "--quiet", "a.txt", cwd=workspace.path)
    project.git("add", "--all", cwd=workspace.path)
    project.git("commit", "--quiet", "--message", "mine", cwd=workspace.path)
    assert project.git("diff", "--name-status", "HEAD^", "HEAD", cwd=workspace.path).split() == [
        *("D", "a.txt"),
        *("M", "own/deep/d.txt"),
    ]
    project.git("checkout", "--quiet", "--ignore-skip-worktree-bits", "--", "out/a.txt", cwd=workspace.path)
    assert (workspace.path / "out" / "a.txt").is_file()
    assert changed(vcs, workspace) == {"a.txt": "deleted", "own/deep/d.txt": "modified"}


def test_an_empty_repository_and_names_that_are_no_text(checkout: Checkout, vcs: Repository) -> None:
    """Any bytes but NUL; a start point without a file."""
    odd = [b"out/\xff\xfe", b"out/new\nline", b"own/deep/\xff", b"own/deep/tab\t"]
    for name in odd:
        checkout.write(os.fsdecode(name), "odd\n")
    checkout.commit("odd")
    workspace = opened(vcs)
    assert held(workspace) == {"README.md", *map(os.fsdecode, odd[2:])}
    for name in odd:
        write(workspace, os.fsdecode(name), "mine\n")
    assert set(changed(vcs, workspace).values()) == {"modified"}
    assert len(changed(vcs, workspace)) == 4
    checkout.git("rm", "-r", "--quiet", ".")
    checkout.commit("empty")
    workspace = opened(vcs, "1")
    write(workspace, "own/x")
    assert changed(vcs, workspace) == {"own/x": "added"}


# What becomes of it


def put(target: Path, kind: str, content: bytes) -> None:
    """Something under a name, whatever is there or above it."""
    if os.path.lexists(target.parent) and (target.parent.is_symlink() or not target.parent.is_dir()):
        target.parent.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):
        shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink()
    if kind == "file":
        target.write_bytes(content)
    elif kind == "link":
        target.symlink_to("../nowhere")
    elif kind == "folder":
        target.mkdir()
        (target / "inside.txt").write_bytes(content)


def edits(rng: random.Random) -> list[Callable[[Path], None]]:
    """Things that an agent might do: whatever it likes to what is there, and files in the place of what is not."""
    made: list[Callable[[Path], None]] = []
    for _ in range(rng.randrange(1, 9)):
        content = rng.choice(LINES) * rng.randrange(3)
        kind, where = rng.choice(["file", "file", "link", "folder"]), rng.choice([INSIDE, INSIDE, OUTSIDE, NEW])
        name = rng.choice(where)
        act = rng.choice(["put", "put", "gone", "mode", "rules", "move", "same"])
        if where is OUTSIDE and kind == "folder" and not name.endswith(".txt"):
            continue  # an ignored folder holds no file that could replace anything
        if act == "put" or where is not INSIDE:
            made.append(lambda root, name=name, kind=kind, content=content: put(root / name, kind, content))
        elif act == "gone":
            made.append(lambda root, name=name: put(root / name, "nothing", b""))
        elif act == "mode":
            made.append(lambda root, name=name: (root / name).is_file() and (root / name).chmod(0o755))
        elif act == "rules":
            rule = rng.choice([b"*.dat\n", b"fresh/\n", b""])
            made.append(lambda root, rule=rule: put(root / ".gitignore", "file", rule))
        elif act == "move":
            made.append(
                lambda root, name=name: os.path.lexists(root / name) and (root / name).rename(root / "out.moved")
            )
        else:
            made.append(lambda root, name=name: (root / name).is_file() and os.utime(root / name))
    if rng.random() < 0.2:
        made.append(lambda root: put(root / "out", "link" if rng.random() < 0.5 else "file", b"flat\n"))
    return made


@pytest.mark.parametrize("rules", RULES)
def test_the_same_edits_give_the_same_tree_as_in_a_full_checkout(
    project: Checkout, vcs: Repository, rules: str
) -> None:
    """Generated edits, under ignore files and attributes of which some are left out as well."""
    for name, content in RULES[rules].items():
        project.write(name, content)
    project.git("add", "--force", "--all")
    project.commit("rules")
    differing = 0
    for seed in range(30):
        trees = []
        for only in (None, OWNS):
            rng, workspace = random.Random(f"{rules}-{seed}"), opened(vcs, f"{seed}.{bool(only)}", only)
            for act in edits(rng):
                act(workspace.path)
            taken = vcs.snapshot(workspace, "work", 1)
            trees.append(taken.tree)
            vcs.retire_workspace(RUN, workspace.name)
        assert trees[0] == trees[1], f"seed {rules}-{seed}: {project.git('diff', '--stat', *trees)}"
        differing += trees[0] != vcs.tree_of(vcs.resolve("HEAD"))
    assert differing >= 25


def test_nothing_done_is_no_change(project: Checkout, vcs: Repository) -> None:
    """What was never checked out is not deleted."""
    workspace = opened(vcs)
    taken = vcs.snapshot(workspace, "work", 1)
    assert (taken.changes, taken.tree) == ((), vcs.tree_of(workspace.start))


def test_a_file_where_one_was_left_out_is_a_modification(project: Checkout, vcs: Repository) -> None:
    """Git's own mark would hide it; a file with the content of the start point is no change, a link is one."""
    workspace = opened(vcs)
    write(workspace, "out/a.txt")
    write(workspace, "out/b.dat", "out/b.dat\n$Id$\n")
    (workspace.path / "other").mkdir()
    (workspace.path / "other" / "d.txt").symlink_to("anywhere")
    assert changed(vcs, workspace) == {"out/a.txt": "modified", "other/d.txt": "modified"}
    (workspace.path / "out" / "a.txt").unlink()
    assert changed(vcs, workspace) == {"other/d.txt": "modified"}


def test_new_files_anywhere_are_seen_and_deletions_of_what_was_there(project: Checkout, vcs: Repository) -> None:
    """The ownership check judges both."""
    workspace = opened(vcs)
    write(workspace, "out/deep/new.txt")
    (workspace.path / "own" / "run.sh").unlink()
    shutil.rmtree(workspace.path / "own" / "deep")
    (workspace.path / "a.txt").unlink()
    assert changed(vcs, workspace) == {
        "a.txt": "deleted",
        "out/deep/new.txt": "added",
        "own/run.sh": "deleted",
        **{name: "deleted" for name in INSIDE if name.startswith("own/deep/")},
    }


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_file_in_the_place_of_a_folder_that_was_left_out(project: Checkout, vcs: Repository, kind: str) -> None:
    """It takes the place of everything below it."""
    workspace = opened(vcs)
    put(workspace.path / "out", kind, b"flat\n")
    gone = {name: "deleted" for name in OUTSIDE if name.startswith("out/")}
    assert changed(vcs, workspace) == {"out": "added", **gone}


def test_a_folder_in_the_place_of_a_file_that_was_left_out(project: Checkout, vcs: Repository) -> None:
    """With a file in it, it replaces the file; an empty one, which git does not know, replaces nothing."""
    workspace = opened(vcs)
    (workspace.path / "other" / "d.txt").mkdir(parents=True)
    assert changed(vcs, workspace) == {}
    write(workspace, "other/d.txt/inside.txt")
    assert changed(vcs, workspace) == {"other/d.txt": "deleted", "other/d.txt/inside.txt": "added"}


def test_a_name_that_differs_in_case_is_another_name(project: Checkout, vcs: Repository) -> None:
    """As it is on this file system."""
    workspace = opened(vcs)
    write(workspace, "OUT/a.txt")
    write(workspace, "out/A.txt")
    assert changed(vcs, workspace) == {"OUT/a.txt": "added", "out/A.txt": "added"}


def test_a_tracked_file_that_rules_ignore_is_tracked_all_the_same(project: Checkout, vcs: Repository) -> None:
    """Ignore files that were left out hold for new files, and for no file of the start point."""
    project.commit("rules", **{"out/.gitignore": "*\n!.gitignore\n"})
    workspace = opened(vcs)
    assert not (workspace.path / "out").exists()
    write(workspace, "out/a.txt")
    write(workspace, "out/new.txt")
    assert changed(vcs, workspace) == {"out/a.txt": "modified"}


def test_attributes_that_were_left_out_hold(project: Checkout, vcs: Repository) -> None:
    """For files that are checked out and for files that come back."""
    project.commit("rules", **{"own/.gitattributes": "*.txt text eol=crlf\n"})
    workspace = opened(vcs)
    assert not (workspace.path / "own" / ".gitattributes").exists()
    assert (workspace.path / "own" / "deep" / "d.txt").read_bytes() == b"own/deep/d.txt\r\n$Id$\r\n"
    (workspace.path / "own" / "deep" / "new.txt").write_bytes(b"new\r\n")
    taken = vcs.snapshot(workspace, "work", 1)
    assert taken.changes == (Change(Kind.ADDED, "own/deep/new.txt"),)
    assert project.content(taken.commit, "own/deep/new.txt") == b"new\n"


def test_a_repository_in_the_place_of_what_was_left_out(project: Checkout, vcs: Repository) -> None:
    """Its files are laid over the start point, its history is not taken, and nothing is deleted."""
    workspace = opened(vcs)
    write(workspace, "out/a.txt")
    write(workspace, "out/more.txt")
    project.git("init", "--quiet", cwd=workspace.path / "out")
    project.git("add", "--all", cwd=workspace.path / "out")
    project.git("commit", "--quiet", "--message", "inner", cwd=workspace.path / "out")
    taken = vcs.snapshot(workspace, "work", 1)
    assert taken.nested == ("out",)
    assert changed(vcs, workspace) == {"out/a.txt": "modified", "out/more.txt": "added"}


def test_submodules_stay_whether_owned_or_not(project: Checkout, vcs: Repository) -> None:
    """They are empty folders, as in a full checkout."""
    at = project.git("rev-parse", "HEAD")
    for path in ("own/deep/sub", "out/sub"):
        project.git("update-index", "--add", "--cacheinfo", f"160000,{at},{path}")
    project.git("commit", "--quiet", "--message", "submodules")
    workspace = opened(vcs)
    assert list((workspace.path / "out").iterdir()) == [workspace.path / "out" / "sub"]
    assert project.git("status", "--porcelain", cwd=workspace.path) == ""
    assert changed(vcs, workspace) == {}
    write(workspace, "out/sub/plain.txt")
    assert changed(vcs, workspace) == {"out/sub": "deleted", "out/sub/plain.txt": "added"}
    shutil.rmtree(workspace.path / "out")
    assert changed(vcs, workspace) == {"out/sub": "deleted"}


def test_a_closed_door_hides_nothing(project: Checkout) -> None:
    """A folder that its owner may not enter is opened before the look at what stands there."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        place.chmod(0o755)
        shutil.copytree(project.root, place / "project")
        vcs = Repository.discover(place / "project", place / "state")
        workspace = opened(vcs)
        write(workspace, "out/a.txt")
        (workspace.path / "out").chmod(0)
        assert as_a_mere_user(place, lambda: str(changed(vcs, workspace))) == "{'out/a.txt': 'modified'}"


def test_a_pipe_in_the_place_of_what_was_left_out_blocks_nothing(project: Checkout, vcs: Repository) -> None:
    """It is no file: what it replaces is gone, as in a full checkout, and a warning names it."""
    workspace = opened(vcs)
    (workspace.path / "out").mkdir()
    os.mkfifo(workspace.path / "out" / "a.txt")
    taken = vcs.snapshot(workspace, "work", 1)
    assert taken.changes == (Change(Kind.DELETED, "out/a.txt"),)
    assert "out/a.txt is no regular file" in taken.warnings[0]


def test_what_is_edited_at_once_is_seen(project: Checkout, vcs: Repository) -> None:
    """Same size, same second, with and without an index that is written anew for the snapshot."""
    for number in range(6):
        workspace = opened(vcs, f"w{number}")
        if number % 2:
            write(workspace, "out/a.txt")
        (workspace.path / "a.txt").write_text("A.txt\n$Id$\n")
        assert "a.txt" in changed(vcs, workspace)


# Preparation, take-over


def test_preparation_brings_nothing_over_what_was_left_out(project: Checkout, vcs: Repository) -> None:
    """The start point has these paths, so that a link or a copy would be a change of the step."""
    project.commit("rules", **{".gitignore": ".env\ncache/\n", ".worktreeinclude": ".env\n"})
    project.git("rm", "--quiet", "--cached", "out/b.dat")
    for path in (".env", "out/.env", "own/deep/.env", "cache/x", "notes.txt"):
        project.write(path, "mine")
    workspace = opened(vcs)
    vcs.prepare(RUN, "0", ["notes.txt", "b.dat"], ["cache", "out", "other/d.txt", "src"])
    assert held(workspace) - {*INSIDE, "README.md", ".gitignore", ".worktreeinclude"} == {
        *(".env", "out/.env", "own/deep/.env", "cache", "notes.txt")
    }
    assert changed(vcs, workspace) == {}
    write(workspace, "notes.txt")
    assert changed(vcs, workspace) == {"notes.txt": "added"}


def test_another_coordinator_takes_the_same_snapshot(project: Checkout, vcs: Repository, tmp_path: Path) -> None:
    """What was left out is written down beside the workspace, out of the agent's reach."""
    workspace = opened(vcs)
    write(workspace, "out/a.txt")
    (workspace.path / "a.txt").unlink()
    again = Repository.discover(project.root, tmp_path / "state")
    found = again.find_workspace(RUN, "0")
    assert found == workspace
    assert again.snapshot(found, "work", 1) == vcs.snapshot(workspace, "work", 1)
    again.remove_workspace(RUN, "0")
    assert again.workspaces() == []


def test_the_agents_own_index_decides_nothing(project: Checkout, vcs: Repository) -> None:
    """It may mark and unmark there what it likes."""
    workspace = opened(vcs)
    project.git("update-index", "--no-skip-worktree", "out/a.txt", cwd=workspace.path)
    project.git("update-index", "--skip-worktree", "a.txt", cwd=workspace.path)
    project.git("rm", "--quiet", "--cached", "--sparse", "other/d.txt", cwd=workspace.path)
    write(workspace, "a.txt")
    assert changed(vcs, workspace) == {"a.txt": "modified"}


def test_the_pristine_index_is_copied_only_where_it_must_be(
    project: Checkout, vcs: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pristine index itself is used where nothing stands in the place of what was left out."""
    seen = []
    take = snapshot.take
    monkeypatch.setattr(snapshot, "take", lambda git, index, *rest: seen.append(index) or take(git, index, *rest))
    workspace = opened(vcs)
    write(workspace, "own/deep/d.txt")
    vcs.snapshot(workspace, "work", 1)
    write(workspace, "out/a.txt")
    vcs.snapshot(workspace, "work", 1)
    assert [index == workspace.private_index for index in seen] == [True, False]
