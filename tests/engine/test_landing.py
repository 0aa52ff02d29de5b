"""Landing: a separate, explicit act that goes forward or refuses with the reason."""

from __future__ import annotations

from pathlib import Path

from support.checker import check
from support.workbench import Result, Workbench, shell, write


def finished(bench: Workbench, *flags: str) -> Result:
    """A run that changes a.txt and adds new.txt."""
    done = bench.run(shell("echo landed > a.txt; echo new > new.txt"), flags=flags)
    assert done.code == 0, done.out
    return done


def test_landing_moves_branch_and_checkout_together(bench: Workbench) -> None:
    """Without --land nothing moves and the next command is printed; `land` fast-forwards; twice is once."""
    base = bench.git("rev-parse", "HEAD")
    plain = bench.call("run", str(bench.plan(shell("echo landed > a.txt"))))
    assert "orchestrix land" in plain.out
    assert bench.git("rev-parse", "HEAD") == base
    landed = bench.call("land", "latest", "--json")
    assert landed.code == 0
    assert (landed.data["target"], landed.data["head"]) == ("main", bench.git("rev-parse", "main"))
    assert (bench.files / "a.txt").read_text() == "landed\n"
    assert bench.git("status", "--porcelain") == ""
    assert bench.call("land", "latest").code == 0
    assert bench.call("status", "latest", "--json").data["landed"] == bench.git("rev-parse", "HEAD")


def test_run_and_land_in_one_go(bench: Workbench) -> None:
    """--land fast-forwards after success and does nothing after a failure."""
    done = finished(bench, "--land")
    assert bench.git("rev-parse", "HEAD") == done.data["head"] == done.data["landed"]
    failed = bench.run(write("x.txt", "x\n"), shell("exit 1", owns=["y"]), flags=("--land",))
    assert (failed.code, failed.data["landed"]) == (1, None)
    assert bench.git("rev-parse", "HEAD") == done.data["head"]


def test_a_branch_that_moved_is_never_overwritten(bench: Workbench) -> None:
    """Refused with the reason; the run's result stays where it is."""
    done = finished(bench)
    mine = bench.commit({"mine.txt": "mine\n"}, "Mine")
    refused = bench.call("land", done.data["run_id"])
    assert refused.code == 4
    assert "main" in refused.err
    assert bench.git("rev-parse", "HEAD") == mine
    assert bench.git("rev-parse", done.data["integration_ref"]) == done.data["head"]


def test_a_dirty_checkout_lands_unless_files_collide(bench: Workbench) -> None:
    """Unrelated edits, staged and not, survive; a modified, a staged and an untracked collision refuse with the name."""
    finished(bench)
    for name, staged in (("a.txt", False), ("a.txt", True), ("new.txt", False)):
        (bench.files / name).write_text("the user's\n")
        if staged:
            bench.git("add", name)
        refused = bench.call("land", "latest", "--json")
        assert refused.code == 4, name
        assert refused.envelope["error"]["paths"] == [name]
        assert (bench.files / name).read_text() == "the user's\n"
        if name == "new.txt":
            (bench.files / name).unlink()
        else:
            bench.git("reset", "-q", "--hard")
    (bench.files / "README.md").write_text("edited\n")
    (bench.files / "src/lib.py").write_text("staged\n")
    bench.git("add", "src/lib.py")
    (bench.files / "other.txt").write_text("untracked\n")
    assert bench.call("land", "latest").code == 0
    assert bench.git("status", "--porcelain").splitlines() == ["M README.md", "M  src/lib.py", "?? other.txt"]
    assert (bench.files / "a.txt").read_text() == "landed\n"


def test_an_ignored_file_in_the_way_is_not_overwritten(bench: Workbench) -> None:
    """Git itself would overwrite ignored files on a merge; landing does not."""
    bench.commit({".gitignore": "secret.env\n"})
    done = bench.run(shell("echo theirs > secret.env; git add -f secret.env; sed -i d .gitignore"))
    assert done.code == 0
    (bench.files / "secret.env").write_text("mine\n")
    refused = bench.call("land", "latest")
    assert "secret.env" not in bench.tree(done.data["head"]) or refused.code == 4
    assert (bench.files / "secret.env").read_text() == "mine\n"


def test_landing_on_another_branch(bench: Workbench) -> None:
    """--into makes a new branch, or moves one that is not checked out, without touching the checkout."""
    base = bench.git("rev-parse", "HEAD")
    done = finished(bench, "--into", "feature/new", "--land")
    assert bench.git("rev-parse", "feature/new") == done.data["head"]
    assert (bench.git("rev-parse", "HEAD"), bench.git("branch", "--show-current")) == (base, "main")
    bench.git("branch", "release", base)
    assert bench.call("land", "latest", "--into", "release").code == 0
    assert bench.git("rev-parse", "release") == done.data["head"]
    assert bench.git("rev-parse", "main") == base
    for name in ("--upload-pack=x", "a..b", "refs/heads/x.lock", ""):
        assert bench.call("land", "latest", f"--into={name}").code in (0, 2), name
    assert bench.git("rev-parse", "main") in (base, done.data["head"])


def test_into_an_existing_branch_starts_from_it(bench: Workbench) -> None:
    """The base is the branch to land on, not whatever is checked out."""
    bench.git("checkout", "-q", "-b", "release")
    bench.commit({"release.txt": "r\n"})
    bench.git("checkout", "-q", "main")
    done = finished(bench, "--into", "release", "--land")
    assert bench.tree("release")["release.txt"] == "r"
    assert bench.tree("release")["a.txt"] == "landed"
    assert done.data["target"] == "release"


def test_a_detached_head_has_no_branch_to_land_on(bench: Workbench) -> None:
    """The run works; `land` asks for --into."""
    bench.git("checkout", "-q", "--detach")
    done = finished(bench)
    assert done.data["target"] is None
    asked = bench.call("land", "latest")
    assert asked.code == 2
    assert "--into" in asked.err
    assert bench.call("land", "latest", "--into", "main").code == 0
    assert bench.git("rev-parse", "main") == done.data["head"]
    assert bench.git("rev-parse", "HEAD") == done.data["base"]


def test_a_branch_that_a_linked_worktree_has_checked_out(bench: Workbench, tmp_path: Path) -> None:
    """Its checkout moves along, or refuses when a file there would be overwritten."""
    other = tmp_path / "other checkout"
    bench.git("worktree", "add", "-q", "-b", "side", str(other))
    done = finished(bench)
    (other / "a.txt").write_text("busy\n")
    assert bench.call("land", "latest", "--into", "side").code == 4
    assert (other / "a.txt").read_text() == "busy\n"
    bench.git("checkout", "-q", "a.txt", cwd=other)
    assert bench.call("land", "latest", "--into", "side").code == 0
    assert (other / "a.txt").read_text() == "landed\n"
    assert bench.git("status", "--porcelain", cwd=other) == ""
    assert bench.git("rev-parse", "side") == done.data["head"]


def test_a_failed_run_lands_only_in_part_and_only_when_asked(bench: Workbench) -> None:
    """`--partial` lands what was merged."""
    done = bench.run(write("x.txt", "x\n"), shell("exit 1", owns=["y"]))
    assert bench.call("land", "latest").code == 4
    assert bench.git("rev-parse", "HEAD") == done.data["base"]
    assert bench.call("land", "latest", "--partial").code == 0
    assert (bench.files / "x.txt").read_text() == "x\n"
    assert check(bench.files) == []


def test_a_checkout_in_the_middle_of_a_merge_is_left_alone(bench: Workbench) -> None:
    """Landing refuses with the reason and the conflicted files stay as they are."""
    bench.git("checkout", "-q", "-b", "rival")
    bench.commit({"a.txt": "rival\n"})
    bench.git("checkout", "-q", "main")
    done = bench.run(write("x.txt", "x\n"))
    bench.git("merge", "--no-commit", "--no-ff", "rival", check=False)
    refused = bench.call("land", "latest")
    assert refused.code == 4
    assert bench.git("rev-parse", "HEAD") == done.data["base"]
    assert (bench.files / ".git/MERGE_HEAD").exists()


def test_committed_reports_land_and_do_so_again(bench: Workbench, monkeypatch) -> None:
    """`reports = "commit"`: every merge commit holds its report; two runs in a row land on a clean checkout."""
    monkeypatch.setenv("ORCHESTRIX_REPORTS", "commit")
    for number in (1, 2):
        done = bench.run(write(f"{number}.txt", "x\n"), write("y.txt", f"{number}\n"), flags=("--land",))
        assert done.code == 0, done.out
        for step in (0, 1):
            text = bench.tree(done.data["head"])[f".orchestrix/step-{step}-result.md"]
            assert f'run: "{done.data["run_id"]}"' in text
        assert bench.git("status", "--porcelain", "--untracked-files=all") == ""
        assert bench.git("rev-parse", "HEAD") == done.data["head"]


def test_a_report_that_is_tracked_is_the_users_and_not_overwritten(bench: Workbench) -> None:
    """A checkout that has committed reports stays clean when a later run keeps its reports local."""
    bench.commit({".orchestrix/step-0-result.md": "committed\n"})
    assert bench.run(write("z.txt", "z\n")).code == 0
    assert bench.git("status", "--porcelain", "--untracked-files=all") == ""


def test_a_run_known_by_its_record_alone_is_not_landed(bench: Workbench) -> None:
    """It happened elsewhere: the refusal names the command that does it with plain git."""
    done = finished(bench)
    (bench.files / ".orchestrix/local/state.db").unlink()
    refused = bench.call("land", done.data["run_id"], "--json")
    assert (refused.code, refused.envelope["error"]["code"]) == (4, "landing_refused")
    assert f"git merge --ff-only {done.data['head']}" in refused.envelope["error"]["hint"]
    assert bench.git("rev-parse", "HEAD") != done.data["head"]
