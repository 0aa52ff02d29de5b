"""resume after kill -9: finished work is not done again, interrupted work is kept, orphans are ended."""

from __future__ import annotations

import hashlib
import subprocess
import time
from pathlib import Path

import pytest
from sandbox.survivors import kill_marked, marked, wait_for_marked
from support.coordinators import KILLED, attempts, ended, kept, run_plan, started, until_alone
from support.workbench import Workbench, shell, write

UNSAFE = ("--sandbox", "none")


def waiting_step(bench: Workbench, name: str, **fields: object) -> dict:
    """A step that writes half of its work, waits for the file `gate`, then writes all of it."""
    script = f"echo half > {name}; while ! test -e {bench.root / 'gate'}; do sleep 0.02; done; echo whole > {name}"
    return shell(script, title=f"waiting {name}", owns=[name], **fields)


def open_gate(bench: Workbench) -> None:
    (bench.root / "gate").touch()


def counting(bench: Workbench, name: str, **fields: object) -> dict:
    """A step whose every execution leaves a line outside of the repository; only without a sandbox can it do so."""
    return shell(f"echo {name} >> {bench.root / 'effects'}; echo 1 > {name}", title=name, owns=[name], **fields)


def effects(bench: Workbench) -> list[str]:
    return (bench.root / "effects").read_text().split()


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_a_kill_while_an_agent_runs(bench: Workbench, sandbox: str) -> None:
    """The merged step is not run again; the interrupted one's bytes are kept and its second attempt is merged."""
    args = run_plan(
        bench, write("first.txt", "1\n"), waiting_step(bench, "second.txt"), flags=("--sandbox", sandbox), goal="g"
    )
    with started(bench, *args) as first:
        first.until_written("second.txt")
        first.until_logged("agent.subagent_closed", task="0")
        first.kill()
    until_alone()
    assert bench.call("status", "r1", "--json").data["status"] == "waiting"
    open_gate(bench)
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons) == (0, ["merged", "merged"])
    assert attempts(bench) == {"0": 1, "1": 2}
    assert [files["second.txt"] for files in kept(bench)] == ["half"]
    assert bench.tree(done.data["head"])["second.txt"] == "whole"
    assert [event["payload"]["resumed"] for event in bench.events() if event["type"] == "run.started"] == [False, True]


def test_a_kill_while_a_step_is_parked(bench: Workbench) -> None:
    """Its snapshot is adopted: the side effects of the parked step and of its dependant happened once."""
    args = run_plan(
        bench,
        waiting_step(bench, "slow.txt"),
        counting(bench, "parked"),
        counting(bench, "on-top", needs=[1]),
        flags=(*UNSAFE, "-j", "2"),
    )
    with started(bench, *args) as first:
        first.until_logged("agent.subagent_waiting_for_merge", task="2")
        first.until_written("slow.txt")
        first.kill()
    parked = bench.call("status", "r1", "--json").data["steps"][1]["commit"]
    open_gate(bench)
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons) == (0, ["merged"] * 3)
    assert attempts(bench) == {"0": 2, "1": 1, "2": 1}
    assert effects(bench) == ["parked", "on-top"]
    assert done.steps[1]["commit"] == parked
    merged = [event["task_id"] for event in bench.events() if event["type"] == "agent.worktree_merged"]
    assert merged == ["0", "1", "2"]


def test_a_kill_between_the_checks_of_a_workspace(bench: Workbench) -> None:
    """The attempt had no verdict yet: it is made again without using up a retry, and its work is kept."""
    args = run_plan(
        bench, shell("echo 1 > x.txt", checks=["true", f"while ! test -e {bench.root / 'gate'}; do sleep 0.02; done"])
    )
    with started(bench, *args) as first:
        first.until_logged("attempt.process_started", purpose="check", count=2)
        first.kill()
    open_gate(bench)
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons, attempts(bench)) == (0, ["merged"], {"0": 2})
    assert [files["x.txt"] for files in kept(bench)] == ["1"]


def test_a_kill_between_the_checks_of_the_merged_tree(bench: Workbench) -> None:
    """Both steps stay parked: nothing is tried again, only the gate is."""
    patient = f"! test -e first.txt || while ! test -e {bench.root / 'gate'}; do sleep 0.02; done"
    args = run_plan(bench, write("first.txt", "1\n"), write("second.txt", "2\n", checks=[patient]))
    with started(bench, *args) as first:
        first.until_logged("workspace.preparing", purpose="gate")
        first.until_logged("attempt.process_started", purpose="check", task="1", count=2)
        first.kill()
    open_gate(bench)
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons, attempts(bench)) == (0, ["merged", "merged"], {"0": 1, "1": 1})


def test_live_orphans_are_ended_and_strangers_are_not(bench: Workbench, tmp_path: Path) -> None:
    """A step that outlived its coordinator is gone before its work is kept; a look-alike of another parent lives on."""
    word = f"orphan-of-{tmp_path.name}-{time.monotonic_ns()}"
    script = (
        f"if test -e {bench.root / 'gate'}; then echo whole > x.txt; exit; fi;"
        f" kill -STOP $PPID; echo half > x.txt; sh -c 'sleep 600; exit 0' {word}"
    )
    with subprocess.Popen(["sh", "-c", "sleep 600; exit 0", f"stranger-{word}"]) as stranger:
        try:
            with started(bench, *run_plan(bench, shell(script), flags=UNSAFE)) as first:
                first.until_written("x.txt")
                wait_for_marked(f"\0{word}", 1)
                first.kill()
            assert len(marked(f"\0{word}")) == 1, "it should have outlived its coordinator"
            open_gate(bench)
            done = ended(bench, "resume", "r1", "--json")
            assert (done.code, done.reasons) == (0, ["merged"])
            assert [files["x.txt"] for files in kept(bench)] == ["half"]
            assert marked(f"\0{word}") == []
            assert stranger.poll() is None
        finally:
            kill_marked(word)


def test_a_step_that_kills_its_coordinator_every_time_is_failed(bench: Workbench) -> None:
    """After one recovery too many: `recoveries_exhausted`, its work kept, the other step merged."""
    deadly = "echo 1 > x.txt; kill -9 $(sed -n 's/^PPid:.//p' /proc/$PPID/status); sleep 60"
    args = run_plan(
        bench, write("fine.txt", "1\n"), shell(deadly, owns=["x.txt"], retries=5), flags=(*UNSAFE, "-j", "1")
    )
    assert ended(bench, *args, env={"ORCHESTRIX_RECOVERIES": "1"}).code == KILLED
    assert ended(bench, "resume", "r1", "--json").code == KILLED
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons) == (1, ["merged", "recoveries_exhausted"])
    assert "died 2 times" in done.steps[1]["message"]
    assert attempts(bench) == {"0": 1, "1": 2}
    assert bench.tree(done.steps[1]["kept_ref"])["x.txt"] == "1"


def test_a_check_that_kills_its_coordinator_at_the_gate_every_time_fails_its_step(bench: Workbench) -> None:
    """The merged tree is where it strikes: the step is parked then, and still no resume goes on for ever."""
    deadly = "! test -e first.txt || kill -9 $(sed -n 's/^PPid:.//p' /proc/$PPID/status)"
    args = run_plan(bench, write("first.txt", "1\n"), write("second.txt", "2\n", checks=[deadly]), flags=UNSAFE)
    assert ended(bench, *args, env={"ORCHESTRIX_RECOVERIES": "1"}).code == KILLED
    assert ended(bench, "resume", "r1", "--json").code == KILLED
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons) == (1, ["merged", "recoveries_exhausted"])


def test_dead_coordinators_use_up_no_retry(bench: Workbench) -> None:
    """Two deaths, then a failure: the one retry that the plan allows is still there."""
    tries = bench.root / "tries"
    third_fails = f"echo x >> {tries}; test $(wc -l < {tries}) -ne 3 && echo x > x.txt"
    args = run_plan(bench, shell(third_fails, retries=1), flags=("--sandbox", "none"))
    deadly = {"ORCHESTRIX_FAILPOINT": "before:attempt.finished"}
    assert ended(bench, *args, env=deadly).code == KILLED
    assert ended(bench, "resume", "r1", "--json", env=deadly).code == KILLED
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons, attempts(bench)) == (0, ["merged"], {"0": 4})


def test_a_changed_plan_file_is_refused_or_accepted_with_an_event(bench: Workbench) -> None:
    """Exit 2 with the new hash; with the flag the run goes on with the plan that it began with."""
    args = run_plan(bench, write("x.txt", "old\n"))
    assert ended(bench, *args, env={"ORCHESTRIX_FAILPOINT": "before:agent.subagent_started"}).code == KILLED
    old = hashlib.sha256((bench.root / "plan.json").read_bytes()).hexdigest()
    plan = bench.plan(write("x.txt", "new\n"))
    new = hashlib.sha256(plan.read_bytes()).hexdigest()
    events = bench.events()
    refused = bench.call("resume", "r1", "--json")
    assert refused.code == 2
    assert new[:12] in refused.envelope["error"]["message"]
    assert bench.events() == events
    done = bench.call("resume", "r1", "--json", "--accept-changed-plan")
    assert (done.code, bench.tree(done.data["head"])["x.txt"]) == (0, "old")
    accepted = [event["payload"] for event in bench.events() if event["type"] == "run.plan_change_accepted"]
    assert accepted == [{"old_digest": old, "new_digest": new}]


def test_a_plan_file_that_is_gone_is_no_harm(bench: Workbench) -> None:
    """The log has the plan."""
    args = run_plan(bench, write("x.txt", "x\n"))
    assert ended(bench, *args, env={"ORCHESTRIX_FAILPOINT": "before:agent.subagent_started"}).code == KILLED
    (bench.root / "plan.json").unlink()
    assert bench.call("resume", "r1", "--json").reasons == ["merged"]


def test_a_finished_run_is_returned_as_it_is(bench: Workbench) -> None:
    """The same result and exit code, no new event, also for a failed one; without any run it says so."""
    assert bench.call("resume").code == 2
    done = bench.run(write("x.txt", "x\n"), shell("exit 7", needs=[]), overlap="allow")
    events = bench.events()
    again = bench.call("resume", "latest", "--json")
    assert (again.code, again.data) == (done.code, done.data)
    assert bench.events() == events


def test_a_death_before_the_record_is_made_good(bench: Workbench) -> None:
    """The run had finished but had no record yet: resume writes it and leaves nothing on disk."""
    args = run_plan(bench, write("x.txt", "x\n"))
    assert ended(bench, *args, env={"ORCHESTRIX_FAILPOINT": "before:record"}).code == KILLED
    assert bench.git("for-each-ref", "refs/orchestrix/runs") == ""
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons, attempts(bench)) == (0, ["merged"], {"0": 1})
    recorded = bench.git("show", "refs/orchestrix/runs/r1:events.jsonl").splitlines()
    assert len(recorded) == len(bench.events())


@pytest.mark.parametrize(
    ("place", "stop"),
    [
        ("after:agent.subagent_failed", False),
        ("after:agent.subagent_closed", False),
        ("after:agent.subagent_failed", True),
        ("after:agent.subagent_closed", True),
    ],
)
def test_a_failure_binds_later_steps_after_a_crash_too(bench: Workbench, place: str, *, stop: bool) -> None:
    """Dependants never run; with `on_failure: stop` nothing after the failed step does."""
    args = run_plan(
        bench,
        shell("echo 1 > x.txt; exit 3", owns=["x.txt"]),
        counting(bench, "independent"),
        counting(bench, "dependant", needs=[0]),
        flags=(*UNSAFE, "-j", "1"),
        on_failure="stop" if stop else "continue",
    )
    assert ended(bench, *args, env={"ORCHESTRIX_FAILPOINT": place}).code == KILLED
    done = ended(bench, "resume", "r1", "--json")
    last = "stopped" if stop else "merged"
    assert (done.code, done.reasons) == (1, ["agent_failed", last, "dependency_failed"])
    assert attempts(bench) == ({"0": 1} if stop else {"0": 1, "1": 1})


@pytest.mark.parametrize("place", ["after:attempt.finished", "after:snapshot.taken#2", "after:report"])
def test_a_verdict_that_is_in_the_log_is_not_asked_for_again(bench: Workbench, place: str) -> None:
    """Whatever was decided before the death stands: each side effect happened once."""
    args = run_plan(bench, counting(bench, "one"), counting(bench, "two", needs=[0]), flags=(*UNSAFE, "-j", "1"))
    assert ended(bench, *args, env={"ORCHESTRIX_FAILPOINT": place}).code == KILLED
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons) == (0, ["merged", "merged"])
    expected = ["one", "two", "two"] if place == "after:snapshot.taken#2" else ["one", "two"]
    assert effects(bench) == expected


@pytest.mark.parametrize("place", ["before:integration_ref", "after:integration_ref", "after:agent.worktree_merged"])
def test_a_merge_that_was_under_way_is_finished_once(bench: Workbench, place: str) -> None:
    """Its intent is in the log before the ref moves, so a moved ref is never taken for tampering."""
    args = run_plan(bench, write("x.txt", "x\n"), write("y.txt", "y\n"))
    assert ended(bench, *args, env={"ORCHESTRIX_FAILPOINT": place}).code == KILLED
    assert "integration.started" in bench.types("0")
    moved = bench.git("rev-parse", "refs/heads/orchestrix/r1/integration") != bench.git("rev-parse", "HEAD")
    assert moved == place.startswith("after")
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons) == (0, ["merged", "merged"])
    assert bench.types("0").count("agent.worktree_merged") == 1
    assert not [event for event in bench.events() if event["type"].startswith("parent_")]
