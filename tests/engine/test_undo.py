"""`land` says what it moved, `undo` takes it back, and both keep what is the user's."""

from __future__ import annotations

import pytest
from support.checker import check
from support.workbench import Result, Workbench, shell, write


def landed(bench: Workbench, *flags: str) -> Result:
    """A landed run that changes a.txt and adds new.txt."""
    done = bench.run(shell("echo landed > a.txt; echo new > new.txt"), flags=("--land", *flags))
    assert done.code == 0, done.out
    return done


def types(bench: Workbench, run: str) -> list[str]:
    return [event["type"] for event in bench.events(run) if event["type"].startswith(("run.land", "run.undo"))]


def test_land_says_what_moved_and_the_way_back_works_as_printed(bench: Workbench) -> None:
    """Old and new tip, the changed files, and a command that takes exactly this landing back."""
    base = bench.git("rev-parse", "HEAD")
    done = bench.run(shell("echo landed > a.txt; echo new > new.txt"))
    said = bench.call("land").out.splitlines()
    assert said[0] == f"main: {base[:12]}..{done.data['head'][:12]}"
    assert any("new.txt" in row and "+" in row for row in said)
    assert "2 files changed" in said[-2]
    way_back = said[-1].partition(": orchestrix ")[2].split()
    assert way_back == ["undo", done.data["run_id"]]
    undone = bench.call(*way_back)
    assert undone.code == 0
    assert bench.git("rev-parse", "HEAD") == base
    assert bench.git("status", "--porcelain") == ""
    assert not (bench.files / "new.txt").exists()
    assert bench.call("status", "--json").data["landed"] is None
    assert types(bench, done.data["run_id"]) == [
        "run.landing_started",
        "run.landed",
        "run.undo_started",
        "run.landing_undone",
    ]
    assert check(bench.files) == []
    assert undone.out.splitlines()[-1] == f"to land it again: orchestrix land {done.data['run_id']}"
    assert bench.call("land").code == 0
    assert check(bench.files) == []


def test_undo_keeps_the_users_other_changes(bench: Workbench) -> None:
    """Edited, staged and untracked files elsewhere stay; one that the landing brought and the user edited refuses."""
    done = landed(bench)
    (bench.files / "README.md").write_text("edited\n")
    (bench.files / "src/lib.py").write_text("staged\n")
    bench.git("add", "src/lib.py")
    (bench.files / "other.txt").write_text("untracked\n")
    (bench.files / "new.txt").write_text("mine now\n")
    refused = bench.call("undo", "--json")
    assert (refused.code, refused.envelope["error"]["paths"]) == (4, ["new.txt"])
    assert refused.envelope["error"]["message"].startswith("undo would overwrite new.txt in ")
    assert refused.envelope["error"]["hint"] == (
        "stash these files (move untracked ones away), then undo again; do not commit them, that rules undo out"
    )
    assert bench.git("rev-parse", "HEAD") == done.data["head"]
    bench.git("stash", "push", "-q", "--", "new.txt")
    undone = bench.call("undo", "--json")
    assert (undone.code, undone.data["head"], undone.data["old"]) == (0, done.data["base"], done.data["head"])
    assert bench.git("status", "--porcelain").splitlines() == ["M README.md", "M  src/lib.py", "?? other.txt"]
    assert bench.git("rev-parse", "HEAD") == done.data["base"]


def test_undo_refuses_when_something_came_after(bench: Workbench) -> None:
    """A commit on top, a later landing, or no landing at all: the reason, and nothing moved."""
    assert bench.call("undo").code == 2
    first = landed(bench)
    second = bench.run(write("b.txt", "b\n"), flags=("--land",))
    refused = bench.call("undo", first.data["run_id"])
    assert refused.code == 4
    assert "something came after" in refused.err
    assert bench.call("undo").code == 0
    assert bench.git("rev-parse", "HEAD") == first.data["head"]
    mine = bench.commit({"mine.txt": "mine\n"})
    assert bench.call("undo", first.data["run_id"]).code == 4
    assert bench.git("rev-parse", "HEAD") == mine
    assert bench.call("undo", second.data["run_id"]).code == 2
    assert check(bench.files) == []


def test_undo_removes_a_branch_that_the_landing_made(bench: Workbench) -> None:
    """Unless it is checked out by now; a branch that is nowhere checked out moves back."""
    done = landed(bench, "--into", "made/new")
    bench.git("checkout", "-q", "made/new")
    assert bench.call("undo").code == 4
    bench.git("checkout", "-q", "main")
    assert bench.call("undo", "--json").data == {
        "run_id": done.data["run_id"],
        "target": "made/new",
        "old": done.data["head"],
        "head": None,
    }
    assert bench.git("branch", "--list", "made/*") == ""
    bench.git("branch", "side")
    assert bench.call("land", "latest", "--into", "side").code == 0
    assert bench.call("undo").code == 0
    assert bench.git("rev-parse", "side") == done.data["base"]
    assert check(bench.files) == []


def test_what_undo_takes_back_can_be_landed_again(bench: Workbench) -> None:
    """Also when nothing else holds it: the integration branch is deleted, the reflogs expire, and git collects."""
    done = landed(bench)
    integration = f"orchestrix/{done.data['run_id']}/integration"
    bench.git("branch", "-q", "-D", integration)
    assert bench.call("undo").code == 0
    bench.git("reflog", "expire", "--expire=now", "--all")
    bench.git("gc", "-q", "--prune=now")
    assert bench.call("land", done.data["run_id"]).code == 0
    assert bench.git("rev-parse", "HEAD") == done.data["head"]
    assert bench.call("undo").code == 0  # what is kept already is kept once
    bench.git("branch", "-q", integration, done.data["head"])  # the checker wants it


def test_a_landing_that_the_user_took_back_is_not_undone(bench: Workbench) -> None:
    """The user took it back by hand: refused with the reason, and nothing is kept for it."""
    done = landed(bench)
    bench.git("reset", "-q", "--hard", done.data["base"])
    integration = f"orchestrix/{done.data['run_id']}/integration"
    bench.git("update-ref", "refs/other", done.data["head"])
    bench.git("branch", "-q", "-D", integration)
    refused = bench.call("undo")
    assert (refused.code, "something came after" in refused.err) == (4, True)
    assert bench.git("for-each-ref", "refs/orchestrix/keep") == ""
    bench.git("branch", "-q", integration, "refs/other")
    bench.git("reset", "-q", "--hard", integration)


def test_what_undo_keeps_is_no_work_of_a_step(bench: Workbench) -> None:
    """`restore` finds nothing to bring back, and `clean` and `doctor` find nothing wrong."""
    done = landed(bench)
    assert bench.call("undo").code == 0
    kept = bench.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/orchestrix/keep")
    assert kept == f"refs/orchestrix/keep/{done.data['run_id']}/undone/{done.data['head'][:12]} {done.data['head']}"
    assert bench.call("restore", done.data["run_id"]).code == 2
    assert bench.call("clean", "--json").data["removed"] == []
    assert bench.call("doctor").code == 0
    assert bench.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/orchestrix/keep") == kept
    assert check(bench.files) == []


def test_a_branch_that_was_deleted_meanwhile_stays_deleted(bench: Workbench) -> None:
    """The run's own branch is not brought back; the user can ask for it by name."""
    bench.git("checkout", "-q", "-b", "topic")
    done = bench.run(write("x.txt", "x\n"))
    bench.git("checkout", "-q", "main")
    bench.git("branch", "-q", "-D", "topic")
    refused = bench.call("land", "latest", "--json")
    assert (refused.code, refused.envelope["error"]["code"]) == (4, "landing_refused")
    assert "deleted" in refused.envelope["error"]["message"]
    assert bench.git("branch", "--list", "topic") == ""
    assert bench.call("land", "latest", "--into", "topic").code == 0
    assert bench.git("rev-parse", "topic") == done.data["head"]


def test_own_copies_of_reports_do_not_stop_committed_ones(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Local reports, then committed ones: the unchanged copy gives way, one that the user edited does not."""
    assert bench.run(write("x.txt", "x\n")).code == 0
    report = bench.files / ".orchestrix/step-0-result.md"
    assert report.is_file()
    monkeypatch.setenv("ORCHESTRIX_REPORTS", "commit")
    done = bench.run(write("y.txt", "y\n"))
    original = report.read_bytes()
    report.write_text("my notes\n")
    refused = bench.call("land", "latest", "--json")
    assert (refused.code, refused.envelope["error"]["paths"]) == (4, [".orchestrix/step-0-result.md"])
    assert report.read_text() == "my notes\n"
    report.write_bytes(original)
    assert bench.call("land", "latest").code == 0
    assert f'run: "{done.data["run_id"]}"' in report.read_text()
    assert bench.git("status", "--porcelain", "--untracked-files=all") == ""


def test_a_refusal_after_the_announcement_is_told(bench: Workbench) -> None:
    """The log has an outcome for everything that it announced."""
    done = bench.run(shell("echo landed > a.txt"))
    (bench.files / "a.txt").write_text("mine\n")
    assert bench.call("land").code == 4
    assert types(bench, done.data["run_id"]) == ["run.landing_started", "run.landing_stopped"]
    assert bench.call("undo").code == 2


@pytest.mark.parametrize("options", ["--squash", "-s ours", "--no-ff"])
def test_options_for_merges_do_not_reach_a_landing(bench: Workbench, options: str) -> None:
    """`branch.NAME.mergeoptions` is for merges that the user makes."""
    bench.git("config", "branch.main.mergeoptions", options)
    done = landed(bench)
    assert bench.git("rev-parse", "main") == done.data["head"]
    assert bench.git("status", "--porcelain") == ""
