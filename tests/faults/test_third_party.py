"""Somebody else takes away or moves what a run stands on: it stops before the next effect, and resume ends it."""

from __future__ import annotations

import os
import shutil
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from faults.held import UP, LiveRun, held, stopped, until
from support.checker import check
from support.workbench import Workbench, shell, write

from harness.engine import failpoints
from harness.vcs import git

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
    away = workspace.rename(bench.root / "away")  # at once: a snapshot of the half that is still there is another story
    shutil.rmtree(away)
    stopped(run.end(), 1, "step 0 failed: agent_failed: step 0 removed or replaced its own workspace")
    _finishes(bench, "retry", "latest", "0")


class _Thief:
    """Takes every workspace of the run away, at one moment of the run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trees = Path(os.environ["XDG_STATE_HOME"])
        self.came = 0
        self._patch = monkeypatch

    def comes_at(self, moment: str) -> None:
        """At a failpoint, `name#2` for the second hit."""
        name, _, number = moment.partition("#")
        hits = count(1)

        def hit(reached: str) -> None:
            if reached == name and next(hits) == int(number or 1):
                self._takes()

        self._patch.setattr(failpoints, "hit", hit)

    def comes_before_git(self, number: int) -> None:
        """Before the git call of this number of those that work in a workspace."""
        calls, real = count(1), git.execute

        def execute(argv: list[str | bytes], *, cwd: Path, **rest: Any) -> git.Answer:
            if cwd.parent.name == "trees" and next(calls) == number:
                self._takes()
            return real(argv, cwd=cwd, **rest)

        self._patch.setattr(git, "execute", execute)

    def _takes(self) -> None:
        for tree in self.trees.glob("orchestrix/*/*/trees/*"):
            shutil.rmtree(tree)
            self.came += 1


_CHECKED = {"setup": ["true"], "checks": ["test -e a.txt"]}
_MOMENTS = (
    "between:workspace",
    "after:workspace",
    "before:process.setup",
    "after:process.setup",
    "before:process.agent",
    "after:process.agent",
    "before:snapshot",
    "after:snapshot",
    "before:process.check",
)


@pytest.mark.parametrize("kind", ["checkout", "overlay"])
@pytest.mark.parametrize("moment", _MOMENTS)
def test_a_workspace_that_vanishes_at_any_moment_is_the_steps_failure(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, moment: str, kind: str
) -> None:
    """Never the run's: the run ends with a failed step, and a retry of it succeeds."""
    with monkeypatch.context() as patch:
        thief = _Thief(patch)
        thief.comes_at(moment)
        script = "echo held > held.txt"
        done = bench.run(shell(script, owns=["held.txt"], **_CHECKED), flags=("--workspace", kind))
    assert thief.came == 1
    assert (done.code, done.envelope["error"]["code"]) == (1, "run_failed"), done.out
    assert "agent_failed: step 0 removed or replaced its own workspace" in done.envelope["error"]["message"]
    assert bench.call("retry", "latest", "0").code == 0
    assert check(bench.files) == []


def test_a_workspace_that_vanishes_before_any_git_call_is_the_steps_failure(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each git call that works in the workspace is such a moment."""
    seen: list[tuple[int, str]] = []
    for number in count(1):
        with monkeypatch.context() as patch:
            thief = _Thief(patch)
            thief.comes_before_git(number)
            script = "mkdir new && cd new && git init -q && echo held > held.txt"  # which is beyond the short way
            done = bench.run(shell(script, **_CHECKED), flags=("--workspace", "checkout"))
        if not thief.came:
            break
        seen.append((done.code, *done.reasons))
        assert check(bench.files) == []
    # The first makes the workspace, and makes it again; the others take the snapshot.
    assert seen == [(0, "merged"), *[(1, "agent_failed")] * (len(seen) - 1)]
    assert len(seen) > 2


def test_a_workspace_of_checks_that_vanishes_is_the_steps_failure(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second step's work passes alone; what it gives together with the first one is checked in another workspace."""
    steps = [write(f"{name}.txt", name, checks=["true"]) for name in ("c", "d")]
    with monkeypatch.context() as patch:
        thief = _Thief(patch)
        thief.comes_at("before:process.check#3")
        done = bench.run(*steps, flags=("--workspace", "checkout", "-j", "2"))
    assert thief.came
    assert (done.code, done.reasons) == (5, ["merged", "check_failed"]), done.out
    assert "the workspace for the checks of step 1 was removed or replaced" in done.envelope["error"]["message"]
    assert bench.call("retry", "latest", "1").code == 0


def test_a_failed_check_is_not_excused_by_a_base_that_vanished(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that may fail on the base: without the base's own result it counts as failed, and the run goes on."""
    failing = write("c.txt", "c", checks=[{"run": "false", "may_fail_on_base": True}])
    assert bench.run(failing).reasons == ["merged"]
    with monkeypatch.context() as patch:
        thief = _Thief(patch)
        thief.comes_at("before:process.check#2")
        done = bench.run(failing, flags=("--workspace", "checkout"))
    assert thief.came
    assert (done.code, done.reasons) == (5, ["check_failed"]), done.out


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
