"""Work that cannot be merged: the child fails with the paths, nothing is half-applied, nothing is lost."""

from __future__ import annotations

import pytest
from support.checker import check, fingerprint
from support.workbench import Workbench, shell, write


def test_two_edits_of_one_line_fail_the_later_step_and_leave_the_user_alone(bench: Workbench) -> None:
    """Exit 4: step 0 is integrated, step 1 is closed with the path, its work is kept; the checkout is byte-identical."""
    bench.git("config", "merge.conflictStyle", "diff3")
    (bench.files / "README.md").write_text("stashed\n")
    bench.git("stash", "-q")
    (bench.files / "src/lib.py").write_text("VALUE = 'edited by the user'\n")
    (bench.files / "staged.txt").write_text("staged\n")
    bench.git("add", "staged.txt")
    (bench.files / "untracked.txt").write_text("untracked\n")
    before = fingerprint(bench.files)
    done = bench.run(
        shell("sed -i s/two/TWO/ a.txt", owns=["a.txt"]),
        shell("sed -i s/two/deux/ a.txt; echo more > b.txt", owns=["a.txt", "b.txt"]),
        overlap="allow",
    )
    run, last = done.data["run_id"], done.steps[1]
    assert (done.code, done.data["exit_code"], done.data["status"]) == (4, 4, "failed")
    assert done.reasons == ["merged", "merge_conflict"]
    assert (last["state"], last["final_status"], last["conflicts"]) == ("closed", "failed", ["a.txt"])
    assert done.envelope["ok"] is False
    assert done.envelope["error"]["reason"] == "merge_conflict"
    assert "a.txt" in last["message"]
    assert bench.tree(done.data["integration_ref"])["a.txt"] == "one\nTWO\nthree"
    assert "b.txt" not in bench.tree(done.data["integration_ref"])
    for kept in (f"refs/heads/orchestrix/{run}/1/work", last["kept_ref"]):
        assert bench.tree(kept)["a.txt"] == "one\ndeux\nthree"
        assert bench.tree(kept)["b.txt"] == "more"
    assert [event["payload"]["pairs"] for event in bench.events() if event["type"] == "run.overlap_allowed"] == [
        [[0, 1]]
    ]
    report = bench.call("report", run, "--step", "1").out
    assert "merge_conflict" in report
    assert last["kept_ref"] in report
    assert check(bench.files, before=before) == []


def test_a_renamed_directory_against_a_file_added_in_the_old_one(bench: Workbench) -> None:
    """Disjoint ownership, default overlap: git cannot say where the new file belongs, so the later step fails."""
    bench.commit({"old/a.txt": "a\n" * 9, "old/b.txt": "b\n" * 9})
    done = bench.run(
        # Not the directory itself: an overlay that a mere user mounts cannot rename one of the start point.
        shell("mkdir new && git mv old/a.txt old/b.txt new/", owns=["old/a.txt", "old/b.txt", "new/**"]),
        write("old/c.txt", "c\n"),
    )
    assert done.code == 4
    assert done.reasons == ["merged", "merge_conflict"]
    assert [path.rsplit("/")[-1] for path in done.steps[1]["conflicts"]] == ["c.txt"]
    assert sorted(bench.tree(done.data["head"])) == ["README.md", "a.txt", "new/a.txt", "new/b.txt", "src/lib.py"]
    assert bench.tree(done.steps[1]["kept_ref"])["old/c.txt"] == "c"


def test_edit_against_deletion_is_a_conflict_and_later_steps_go_on(bench: Workbench) -> None:
    """Step 2 does not need the failed step 1 and is integrated after it."""
    done = bench.run(
        {"title": "delete", "actions": [{"delete_file": {"path": "a.txt"}}], "owns": ["a.txt"]},
        shell("echo four >> a.txt", owns=["a.txt"]),
        write("c.txt", "c\n"),
        overlap="allow",
    )
    assert (done.code, done.reasons) == (4, ["merged", "merge_conflict", "merged"])
    assert done.steps[1]["conflicts"] == ["a.txt"]
    assert sorted(bench.tree(done.data["head"])) == ["README.md", "c.txt", "src/lib.py"]


@pytest.mark.parametrize("written", [False, True])
def test_overlap_refuse_wants_the_need_written(bench: Workbench, *, written: bool) -> None:
    """An unwritten need makes the plan invalid (exit 2, nothing made); a written one makes it run."""
    done = bench.run(
        shell("echo 1 >> a.txt", owns=["a.txt"]),
        shell("echo 2 >> a.txt", owns=["*.txt"], needs=[0] if written else []),
        overlap="refuse",
    )
    assert done.code == (0 if written else 2)
    if not written:
        assert done.envelope["error"]["code"] == "plan_invalid"
        assert bench.git("for-each-ref", "refs/heads/orchestrix", "refs/orchestrix") == ""


def test_steps_that_stand_on_the_same_need_merge_as_git_would(bench: Workbench) -> None:
    """A need's changes are part of the base of its dependants' merges: no false conflict, no doubled line."""
    done = bench.run(
        shell("echo head > b.txt; for n in 1 2 3 4 5 6 7 8; do echo $n >> b.txt; done", owns=["b.txt"]),
        shell("sed -i s/head/HEAD/ b.txt", owns=["b.txt"], needs=[0]),
        shell("sed -i s/8/eight/ b.txt", owns=["b.txt"], needs=[0]),
        overlap="allow",
    )
    assert (done.code, done.reasons) == (0, ["merged"] * 3)
    assert bench.tree(done.data["head"])["b.txt"].split() == ["HEAD", "1", "2", "3", "4", "5", "6", "7", "eight"]
