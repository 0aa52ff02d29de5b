"""Where a run may happen: checkouts of every shape, and clear refusals where it may not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.checker import check
from support.workbench import Workbench, shell, write


@pytest.mark.parametrize("name", ["sp ace:ünï çødé", "-quote'\"$x%s\\back"])
def test_a_repository_at_an_odd_path(tmp_path: Path, name: str) -> None:
    """Spaces, letters of any language, quotes, colons and dashes in the path; conflicts and commits included."""
    bench = Workbench(tmp_path / name)
    bench.commit({"a.txt": "one\n"})
    done = bench.run(
        shell(
            "echo 1 > a.txt; git add a.txt; git -c user.name=A -c user.email=a@b commit -qm mine",
            owns=["a.txt"],
            checks=["true"],
        ),
        shell("echo 2 > a.txt", owns=["a.txt"]),
        shell("echo 3 > b.txt", owns=["b.txt"], checks=["test -e a.txt"]),
        overlap="allow",
    )
    assert (done.code, done.reasons) == (4, ["merged", "merge_conflict", "merged"]), done.out + done.err
    assert check(bench.files) == []
    assert bench.call("land", "--partial").code == 0


def test_a_path_with_a_line_break_is_refused(tmp_path: Path) -> None:
    """Clearly, before anything is made."""
    bench = Workbench(tmp_path / "line\nbreak")
    bench.commit({"a.txt": "one\n"})
    done = bench.run(write("x.txt", "x\n"))
    assert done.code == 3
    assert not (bench.files / ".orchestrix").exists()


def test_from_a_subdirectory_and_with_minus_c(bench: Workbench) -> None:
    """Before and after the command; the plan's path is relative to the caller, or else to the directory."""
    bench.commit({"plans/p.json": bench.plan(write("x.txt", "x\n")).read_text()})
    sub = str(bench.files / "src")
    plan = str(bench.root / "plan.json")
    assert bench.call("run", plan, "--json", "-C", sub).code == 0
    assert bench.call("-C", sub, "run", plan, "--json").code == 0
    assert bench.call("-C", str(bench.files), "run", "plans/p.json", "--json").code == 0
    assert bench.call("run", "-C", str(bench.files), "plans/p.json", "--json").code == 0
    assert len(bench.call("list", "--json", "-C", sub).data["runs"]) == 4
    assert bench.call("-C", sub, "status", "--json").data["status"] == "succeeded"
    assert not (bench.files / "src/.orchestrix").exists()
    for args in (("-C", "/nowhere/at/all", "status"), ("status", "-C", "/nowhere/at/all")):
        assert bench.call(*args).code == 2


def test_a_linked_worktree_is_a_checkout_like_any_other(bench: Workbench, tmp_path: Path) -> None:
    """The run starts from its branch, lands there, and does not touch the main checkout."""
    side = tmp_path / "side"
    bench.git("worktree", "add", "-q", "-b", "side", str(side))
    main = bench.git("rev-parse", "main")
    done = bench.call("run", str(bench.plan(shell("echo s > s.txt"))), "-C", str(side), "--json", "--land")
    assert done.code == 0, done.out
    assert (done.data["target"], (side / "s.txt").read_text()) == ("side", "s\n")
    assert bench.git("status", "--porcelain", cwd=side) == ""
    assert bench.git("rev-parse", "main") == main
    assert not (bench.files / ".orchestrix").exists()
    assert check(side) == []


def test_a_shallow_clone_can_be_worked_on(bench: Workbench, tmp_path: Path) -> None:
    """CI checkouts are shallow; a conflict and a merge work there."""
    bench.commit({"b.txt": "b\n"})
    shallow = tmp_path / "shallow"
    bench.git("clone", "-q", "--depth", "1", f"file://{bench.files}", str(shallow))
    plan = bench.plan(shell("echo 1 > a.txt", owns=["a.txt"]), shell("echo 2 > a.txt", owns=["a.txt"]), overlap="allow")
    done = bench.call("run", str(plan), "-C", str(shallow), "--json")
    assert (done.code, done.reasons) == (4, ["merged", "merge_conflict"]), done.out
    assert check(shallow) == []


def test_a_dirty_checkout_is_no_obstacle_and_no_part_of_the_run(bench: Workbench) -> None:
    """The run starts from the commit; what is not committed is not in it and not touched."""
    (bench.files / "a.txt").write_text("dirty\n")
    (bench.files / "new.txt").write_text("new\n")
    done = bench.run(shell("cat a.txt > seen.txt; ls >> seen.txt"))
    seen = bench.tree(done.data["head"])["seen.txt"].split()
    assert "dirty" not in seen
    assert "new.txt" not in seen
    assert (bench.files / "a.txt").read_text() == "dirty\n"


def refused(bench: Workbench, *words: str, where: Path | None = None, code: int = 3) -> None:
    """The run is refused with these words, a hint, and nothing made."""
    place = where or bench.files
    done = bench.call("run", str(bench.plan(write("x.txt", "x\n"))), "-C", str(place), "--json")
    error = done.envelope["error"]
    assert (done.code, done.envelope["ok"]) == (code, False), done.out
    assert all(word in error["message"] for word in words), error
    assert error["hint"]
    assert "Traceback" not in done.err


def test_places_where_nothing_can_run(bench: Workbench, tmp_path: Path) -> None:
    """No repository, a bare one, one without a commit: exit 2 or 3 with a hint."""
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(bench, str(empty), where=empty)
    assert list(empty.iterdir()) == []
    bare = tmp_path / "bare.git"
    bench.git("clone", "-q", "--bare", str(bench.files), str(bare))
    refused(bench, str(bare), where=bare)
    unborn = tmp_path / "unborn"
    bench.git("init", "-q", str(unborn))
    done = bench.call("run", str(bench.root / "plan.json"), "-C", str(unborn), "--json")
    assert done.code in (2, 3)
    assert done.envelope["error"]["hint"]
    assert not (unborn / ".orchestrix").exists()


def test_a_bookkeeping_folder_that_cannot_be_used(bench: Workbench, tmp_path: Path) -> None:
    """A link is not followed, a file is not overwritten: exit 3 and a sentence, for `.orchestrix` and its parts."""
    folder = bench.files / ".orchestrix"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder.symlink_to(elsewhere)
    refused(bench, ".orchestrix")
    assert list(elsewhere.iterdir()) == []
    folder.unlink()
    folder.write_text("a file\n")
    refused(bench, ".orchestrix")
    assert bench.call("init", "--json").code == 3
    folder.unlink()
    (folder / "local").mkdir(parents=True)
    (folder / "local/state.db").mkdir()
    refused(bench, "state.db")
    assert bench.call("status", "--json").code in (2, 3)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_repository_of_somebody_else_is_refused(bench: Workbench) -> None:
    """Git's safe.directory rule holds for the harness, too; nothing is written there."""
    for folder, _, names in os.walk(bench.files):
        for name in [".", *names]:
            shutil.chown(Path(folder) / name, user=12345)
    refused(bench, "another user")
    assert not (bench.files / ".orchestrix").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_bookkeeping_folder_is_refused(bench: Workbench) -> None:
    """Exit 3 with the path."""
    (bench.files / ".orchestrix").mkdir(mode=0o555)
    refused(bench, ".orchestrix")


@pytest.mark.parametrize("name", ["orchestrix", "refs/heads/orchestrix"])
def test_a_branch_of_the_user_in_the_way(bench: Workbench, name: str) -> None:
    """A branch named `orchestrix` leaves no room for `orchestrix/<run>/...`: refused, and it stays."""
    bench.git("update-ref", f"refs/heads/{name}", "HEAD")
    done = bench.run(write("x.txt", "x\n"))
    if name == "orchestrix":
        assert done.code == 3, done.out
        assert "orchestrix" in done.envelope["error"]["message"]
        assert done.envelope["error"]["hint"]
    else:
        assert done.code == 0
    assert bench.git("rev-parse", f"refs/heads/{name}") == bench.git("rev-parse", "HEAD")


def test_a_tag_with_a_branchs_name_and_an_odd_base(bench: Workbench) -> None:
    """Full ref names everywhere; a base that looks like an option or does not exist is exit 2."""
    base = bench.git("rev-parse", "HEAD")
    bench.commit({"second.txt": "2\n"})
    bench.git("tag", "main", base)
    done = bench.run(shell("ls > seen.txt"), flags=("--land",))
    assert done.code == 0, done.out
    assert "second.txt" in bench.tree("refs/heads/main")
    assert bench.git("rev-parse", "refs/tags/main") == base
    older = bench.run(shell("ls > seen.txt"), flags=("--base", base))
    assert older.data["base"] == base
    for odd in ("--output=owned", "no-such-thing", "HEAD:a.txt", ""):
        assert bench.run(write("x.txt", "x\n"), flags=(f"--base={odd}",)).code in ((0, 2) if not odd else (2,)), odd
    assert not (bench.files / "owned").exists()


def test_a_leaked_git_environment_changes_nothing(bench: Workbench, tmp_path: Path, monkeypatch) -> None:
    """GIT_DIR and friends of the caller (a hook, an editor) do not redirect the run."""
    decoy = Workbench(tmp_path / "decoy")
    decoy.commit({"decoy.txt": "d\n"})
    before = decoy.git("for-each-ref")
    head = bench.git("rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(decoy.files / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(decoy.files))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    done = bench.run(shell("echo 1 > x.txt; git status --porcelain > status.txt"))
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name)
    assert done.code == 0, done.out
    assert done.data["base"] == head
    assert decoy.git("for-each-ref") == before
