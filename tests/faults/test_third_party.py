"""Somebody else takes away or moves what a run stands on: it stops before the next effect, and resume ends it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from faults.held import UP, LiveRun, held, stopped, until
from support.checker import check
from support.workbench import Workbench, shell, write

_PROGRAMS = ("sh", "sleep", "touch", "rm", "env", "cat", "bwrap", "git")


def _finishes(bench: Workbench, *args: str) -> None:
    """The run ends in the tree that an undisturbed one gives, and every promise holds."""
    done = bench.call(*(args or ("resume",)), "--json")
    assert (done.code, done.reasons) == (0, ["merged"] * len(done.steps)), done.out
    assert bench.tree(done.data["head"]) == {"a.txt": "one", "b.txt": "two", "held.txt": "held", "after.txt": "after"}
    assert check(bench.files) == []
    assert bench.call("audit").code == 0


def _plan(bench: Workbench) -> None:
    bench.plan(held("held.txt"), write("after.txt", "after\n", needs=[0]))


def test_git_that_disappears_stops_the_run(bench: Workbench, tmp_path: Path) -> None:
    """The next git call says that git is missing; once it is back the run carries on."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in _PROGRAMS:
        found = shutil.which(name)
        if found:
            (programs / name).symlink_to(found)
    _plan(bench)
    run = LiveRun(bench, "--sandbox", "none", PATH=str(programs))
    run.workspace()
    (programs / "git").unlink()
    run.let_go()
    stopped(run.end(), 3, "git is not installed")
    _finishes(bench)


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_a_workspace_deleted_under_a_step_costs_an_attempt_and_no_more(bench: Workbench, sandbox: str) -> None:
    """Nobody can tell who did it: the step fails with what is known, and a retry makes the workspace anew."""
    _plan(bench)
    run = LiveRun(bench, "--sandbox", sandbox, "--workspace", "checkout")
    workspace = run.workspace()
    shutil.rmtree(workspace)
    stopped(run.end(), 1, "step 0 failed: agent_failed: step 0 removed or replaced its own workspace")
    _finishes(bench, "retry", "latest", "0")


def test_an_overlay_deleted_under_a_step_costs_an_attempt_and_no_more(bench: Workbench) -> None:
    """Outside it is an empty directory; without it the mount is gone, and only the step's own sandbox still has it."""
    wait = f'until [ -e "{bench.files}/.git/go" ]; do sleep 0.02; done'
    script = f"echo held > held.txt; touch {UP}; {wait}; rm {UP}"
    waiting = shell(script, owns=["held.txt"])
    bench.plan(waiting, write("after.txt", "after\n", needs=[0]))
    run = LiveRun(bench, "--sandbox", "bwrap", "--workspace", "overlay")
    shutil.rmtree(run.workspace())
    (bench.files / ".git" / "go").touch()
    stopped(run.end(), 1, "step 0 failed: agent_failed: step 0 removed or replaced its own workspace")
    _finishes(bench, "retry", "latest", "0")


@pytest.mark.parametrize("deleted", [False, True], ids=["moved", "deleted"])
def test_an_integration_ref_that_a_stranger_moved_is_put_back(bench: Workbench, deleted: bool) -> None:
    """The log says where it was; what it was moved to is kept, and the event names it."""
    stray = bench.git("commit-tree", "HEAD^{tree}", "-m", "stray")
    bench.plan(write("after.txt", "after\n"), held("held.txt", needs=[0]))
    run = LiveRun(bench, "--sandbox", "auto")
    run.workspace()
    run_id = until(lambda: bench.call("list", "--json").data["runs"], "the run")[0]["run_id"]
    ref = f"refs/heads/orchestrix/{run_id}/integration"
    bench.git("update-ref", *(["-d", ref] if deleted else [ref, stray]))
    run.let_go()
    done = run.end()
    assert (done.code, done.reasons) == (0, ["merged", "merged"]), done.out
    tampered = [event["payload"]["what"] for event in bench.events() if event["type"] == "parent_tampered"]
    assert tampered == [[f"{ref} was moved to {None if deleted else stray}; put back"]]
    kept = bench.git("for-each-ref", "--format=%(objectname)", f"refs/orchestrix/keep/{run_id}/moved/")
    assert kept == ("" if deleted else stray)
    _finishes(bench)


def test_a_log_taken_away_stops_the_run_and_put_back_lets_it_go_on(bench: Workbench) -> None:
    """Nothing is appended to a log that nobody will find, and nothing acts without one."""
    _plan(bench)
    run = LiveRun(bench)
    run.workspace()
    local, away = bench.files / ".orchestrix/local", bench.root / "away"
    local.rename(away)
    run.let_go()
    stopped(run.end(), 3, "was removed or replaced while it was in use")
    lost = bench.call("resume", "--json")
    assert (lost.code, lost.envelope["error"]["code"]) == (2, "not_found")
    assert bench.git("for-each-ref", "--format=%(refname:lstrip=-1)", "refs/heads/orchestrix") == "work\nintegration"
    shutil.rmtree(local, ignore_errors=True)
    away.rename(local)
    _finishes(bench)


def test_a_changed_plan_is_refused_with_its_hash_or_accepted_with_an_event(bench: Workbench) -> None:
    """The run goes on with the plan that it began with; that the file differs is in the log."""
    _plan(bench)
    run = LiveRun(bench)
    run.workspace()
    run.process.kill()
    run.process.communicate()
    plan = bench.root / "plan.json"
    before = plan.read_text()
    plan.write_text(before.replace("after", "other"))
    refused = bench.call("resume", "--json")
    stopped(refused, 2, "has changed since the run began (sha256 ")
    assert "--accept-changed-plan" in refused.envelope["error"]["hint"]
    _finishes(bench, "resume", "--accept-changed-plan")
    assert [event["type"] for event in bench.events()].count("run.plan_change_accepted") == 1
