"""`cancel` is an end: every child is closed, work is kept, and what was cancelled is done by successors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from support.coordinators import KILLED, Coordinator, ended, kept, run_plan, started
from support.workbench import ROOT, Workbench, shell, write


def gated(bench: Workbench, name: str, **fields: Any) -> dict[str, Any]:
    """A step that leaves half of its work and goes on when the file `gate` is there."""
    gate = bench.root / "gate"
    script = f"echo half > {name}; while ! test -e {gate}; do sleep 0.02; done; echo whole > {name}"
    return shell(script, owns=[name], title=f"gated {name}", **fields)


def states(bench: Workbench, run: str = "r1") -> list[tuple[str, str, str]]:
    """State, final status and close reason of every step."""
    steps = bench.call("status", run, "--json").steps
    return [(step["state"], step["final_status"], step["close_reason"]) for step in steps]


def ends(bench: Workbench, run: str = "r1") -> list[tuple[str, int]]:
    """Status and exit code of every end that the log has."""
    finished = [event["payload"] for event in bench.events(run) if event["type"] == "run.finished"]
    return [(payload["status"], payload["exit_code"]) for payload in finished]


MERGED = ("closed", "completed", "merged")
CANCELLED = ("closed", "failed", "cancelled")


def left_running(bench: Workbench, run: Coordinator, *names: str) -> None:
    for name in names:
        run.until_written(name)


def open_gate_and_resume(bench: Workbench) -> Any:
    (bench.root / "gate").touch()
    return ended(bench, "resume", "r1", "--json")


def four_steps(bench: Workbench) -> tuple[str, ...]:
    """One merged, one parked behind a running one, one running, one not started."""
    return run_plan(
        bench,
        write("first.txt", "1\n"),
        gated(bench, "x.txt"),
        write("parked.txt", "p\n"),
        shell("cat x.txt > y.txt", needs=[1], owns=["y.txt"]),
        flags=("-j", "2"),
    )


@pytest.mark.parametrize("how", ["alive", "dead", "interrupted"])
def test_every_child_is_closed_and_its_work_kept(bench: Workbench, how: str) -> None:
    """Whether the coordinator lives, was killed or was stopped: merged stays merged, all else is closed as cancelled."""
    with started(bench, *four_steps(bench)) as run:
        left_running(bench, run, "x.txt")
        run.until_logged("agent.subagent_waiting_for_merge", task="2")
        run.until_logged("agent.subagent_closed", task="0")
        if how == "dead":
            run.kill()
        elif how == "interrupted":
            run.send(signal.SIGINT)
            assert run.end().code == 130
            assert bench.call("status", "r1", "--json").data["ended"] is False
            assert states(bench)[1][0] == "running"
        assert bench.call("cancel", "r1", "--json").data == {"run_id": "r1", "cancelled": True}
        if how == "alive":
            assert run.end().code == 143
    assert states(bench) == [MERGED, CANCELLED, CANCELLED, CANCELLED]
    data = bench.call("status", "r1", "--json").data
    assert (data["status"], data["exit_code"], data["ended"]) == ("cancelled", 130, True)
    assert ends(bench) == [("cancelled", 130)]
    files = [found for found in kept(bench, "r1") if "x.txt" in found or "parked.txt" in found]
    assert {"half"} == {found["x.txt"] for found in files if "x.txt" in found}
    assert {"p"} == {found["parked.txt"] for found in files if "parked.txt" in found}
    assert bench.types("3", "r1")[-1] == "agent.subagent_closed"
    sequence = [kind for kind in bench.types("3", "r1") if kind.startswith("agent.")]
    assert sequence == ["agent.subagent_created", "agent.subagent_failed", "agent.subagent_closed"]


def test_a_resume_makes_successors_for_what_was_cancelled(bench: Workbench) -> None:
    """New sub-agents under the same contracts; what was merged is not run again."""
    with started(bench, *four_steps(bench)) as run:
        left_running(bench, run, "x.txt")
        run.until_logged("agent.subagent_closed", task="0")
        assert bench.call("cancel", "r1").code == 0
        run.end()
    done = open_gate_and_resume(bench)
    assert (done.code, done.reasons) == (0, ["merged"] * 4), done.out
    assert [step["sub_agent_id"].endswith("~2") for step in done.steps] == [False, True, True, True]
    tree = bench.tree(done.data["head"])
    assert (tree["x.txt"], tree["y.txt"], tree["parked.txt"]) == ("whole", "whole", "p")
    assert ends(bench) == [("cancelled", 130), ("succeeded", 0)]


def test_a_retry_makes_successors_of_one_step_and_its_dependants(bench: Workbench) -> None:
    """The other cancelled steps stay closed."""
    with started(bench, *four_steps(bench)) as run:
        left_running(bench, run, "x.txt")
        run.until_logged("agent.subagent_waiting_for_merge", task="2")
        run.until_logged("agent.subagent_closed", task="0")
        assert bench.call("cancel", "r1").code == 0
        run.end()
    (bench.root / "gate").touch()
    done = bench.call("retry", "r1", "1", "--json")
    assert (done.code, done.reasons) == (130, ["merged", "merged", "cancelled", "merged"]), done.out


@pytest.mark.parametrize("how", ["alive", "dead"])
def test_nested_runs_are_closed_with_their_parent(bench: Workbench, how: str) -> None:
    """Two levels deep; what was integrated below is kept as the parent's work, and the resume spawns new runs."""
    inner = {"title": "inner", "owns": ["p/**"], "steps": [write("p/a.txt", "a\n"), gated(bench, "p/x.txt", needs=[0])]}
    plan = run_plan(bench, {"title": "outer", "owns": ["p/**"], "steps": [inner, write("p/z.txt", "z\n", needs=[0])]})
    with started(bench, *plan) as run:
        run.until_written("p/x.txt")
        if how == "dead":
            run.kill()
        assert bench.call("cancel", "r1").code == 0
        if how == "alive":
            run.end()
    assert states(bench) == [CANCELLED]
    assert states(bench, "r1-s0") == [CANCELLED, CANCELLED]
    assert states(bench, "r1-s0-s1") == [MERGED, CANCELLED]
    assert [ends(bench, run) for run in ("r1", "r1-s0", "r1-s0-s1")] == [[("cancelled", 130)]] * 3
    inner_kept = bench.call("status", "r1-s0", "--json").steps[0]["kept_ref"]
    assert bench.tree(inner_kept)["p/a.txt"] == "a"
    done = open_gate_and_resume(bench)
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert bench.tree(done.data["head"])["p/x.txt"] == "whole"


def keep_refs(bench: Workbench) -> dict[str, str]:
    """What is kept of the run, by step and the end of the ref's name: its file x.txt."""
    refs = bench.git("for-each-ref", "--format=%(refname)", "refs/orchestrix/keep/r1").split()
    return {"/".join(ref.split("/")[-2:]): bench.git("show", f"{ref}:x.txt") for ref in refs}


def test_pauses_and_candidates_are_closed(bench: Workbench) -> None:
    """A step that waits for its next attempt, and every candidate of a race, are closed and stay kept."""
    gate = bench.root / "gate"
    race = shell(
        f'echo "$ORCHESTRIX_CANDIDATE" > x.txt; while ! test -e {gate}; do sleep 0.02; done', candidates=2, needs=[]
    )
    plan = run_plan(bench, shell("echo failed > x.txt; exit 1", retries=3), race, overlap="allow", flags=("-j", "3"))
    with started(bench, *plan, env={"ORCHESTRIX_BACKOFF_BASE": "5m"}) as run:
        run.until_logged("task_retry_scheduled")
        run.until_logged("attempt.process_started", count=2, task="1")
        assert bench.call("cancel", "r1").code == 0
        run.end()
    assert states(bench) == [CANCELLED, CANCELLED]
    assert keep_refs(bench)["0/attempt-1"] == "failed"
    assert bench.git("for-each-ref", "refs/heads/orchestrix", "--format=%(refname)").split() == [
        "refs/heads/orchestrix/r1/0/work",
        "refs/heads/orchestrix/r1/1/work",
        "refs/heads/orchestrix/r1/integration",
    ]


PLACES = [
    "before:run.cancelled",
    "after:run.started",
    "before:agent.subagent_failed",
    "after:agent.subagent_failed",
    "before:agent.subagent_closed",
    "after:agent.subagent_closed",
    "before:agent.subagent_failed#2",
    "before:run.finished",
    "after:run.finished",
    "before:checkpoint",
    "before:record",
]


@pytest.mark.parametrize("verb", ["cancel", "resume"])
@pytest.mark.parametrize("place", PLACES)
def test_a_cancel_that_is_killed_comes_to_its_end(bench: Workbench, place: str, verb: str) -> None:
    """Repeated, it ends in the same place; a resume finishes it first, then makes successors."""
    with started(bench, *four_steps(bench)) as run:
        left_running(bench, run, "x.txt")
        run.until_logged("agent.subagent_waiting_for_merge", task="2")
        run.until_logged("agent.subagent_closed", task="0")
        run.kill()
    killed = ended(bench, "cancel", "r1", env={"ORCHESTRIX_FAILPOINT": place})
    assert killed.code in {KILLED, 0}
    if killed.code == KILLED and verb == "cancel":
        repeated = ended(bench, "cancel", "r1", "--json")
        assert repeated.code == 0, repeated.err
        assert states(bench) == [MERGED, CANCELLED, CANCELLED, CANCELLED]
    done = open_gate_and_resume(bench)
    assert (done.code, done.reasons) == (0, ["merged"] * 4), done.out


def test_what_has_ended_cannot_be_cancelled(bench: Workbench) -> None:
    """Exit 2 with the status, for each kind of end, and nothing is written; a nested run names the run it is part of."""
    bench.run({"title": "p", "steps": [write("a.txt", "1\n")]}, flags=("--run-id", "r1"))
    bench.run(shell("exit 1"), flags=("--run-id", "r2"))
    before = len(bench.events("r1"))
    for run, status in (("r1", "succeeded"), ("r2", "failed")):
        refused = bench.call("cancel", run, "--json")
        assert (refused.code, refused.envelope["error"]["code"]) == (2, "usage")
        assert f"has ended already: it is {status}" in refused.envelope["error"]["message"]
    below = bench.call("cancel", "r1-s0", "--json")
    assert (below.code, "part of run r1" in below.out) == (2, True)
    assert len(bench.events("r1")) == before


def test_a_run_that_waits_can_be_cancelled(bench: Workbench) -> None:
    """Nobody drives it: the open step is closed; a second cancel is refused."""
    (bench.files / ".orchestrix").mkdir()
    (bench.files / ".orchestrix/config.toml").write_text('[errors]\nAgentFailed = "escalate"\n')
    waiting = bench.run(shell("echo 1 > x.txt; exit 1"), flags=("--run-id", "r1"))
    assert waiting.code == 7
    assert bench.call("cancel", "r1").code == 0
    assert states(bench) == [CANCELLED]
    assert bench.call("cancel", "r1").code == 2


@pytest.mark.parametrize(
    "args",
    [
        ("resume", "r1"),
        ("retry", "r1", "0"),
        ("approve", "r1", "0"),
        ("reject", "r1", "0"),
        ("record", "r1", "-o", "r1.zip"),
        ("land", "r1"),
        ("undo", "r1"),
        ("run", "PLAN", "--run-id", "r1"),
    ],
    ids=lambda args: args[0],
)
def test_a_run_that_another_coordinator_holds_is_busy(bench: Workbench, args: tuple[str, ...]) -> None:
    """Exit 6 and who holds it, whatever the verb would have said of the step; the run is left alone."""
    plan = run_plan(bench, gated(bench, "x.txt"))
    with started(bench, *plan) as run:
        run.until_written("x.txt")
        called = ended(bench, *(plan[1] if arg == "PLAN" else arg for arg in args), "--json")
        assert (called.code, called.envelope["error"]["code"]) == (6, "busy"), called.out
        assert str(run.pid) in called.envelope["error"]["message"]
        (bench.root / "gate").touch()
        assert run.end().code == 0


def test_clean_and_restore_beside_a_held_run_leave_it_alone(bench: Workbench) -> None:
    """`clean` removes nothing of it, also where it ended before and is driven again; `restore` brings back what is merged."""
    plan = run_plan(bench, write("a.txt", "merged\n"), gated(bench, "x.txt"))
    for verb in (plan, ("resume", "r1", "--json")):
        with started(bench, *verb) as run:
            there = run.until_written("x.txt")
            run.until_logged("agent.subagent_closed", task="0")
            for flags in ((), ("--dry-run",)):
                assert bench.call("clean", *flags, "--json").data["removed"] == []
            assert there.read_text() == "half\n"
            assert bench.call("restore", "r1", "0", "--json").code == 0
            if verb is plan:
                assert bench.call("cancel", "r1").code == 0
                run.end()
            else:
                (bench.root / "gate").touch()
                assert run.end().reasons == ["merged", "merged"]


def test_a_holder_in_another_pid_namespace_is_not_taken_for_gone(bench: Workbench) -> None:
    """As from a second container that shares the folder: exit 6, why and where to cancel; nothing is written, the run goes on."""
    plan = run_plan(bench, gated(bench, "x.txt"))
    elsewhere = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    with started(bench, *plan) as run:
        run.until_written("x.txt")
        before = bench.events("r1")
        argv = [*elsewhere, sys.executable, "-m", "harness", "cancel", "r1", "--json"]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        asked = subprocess.run(argv, cwd=bench.files, env=env, capture_output=True, text=True, check=False)
        error = json.loads(asked.stdout)["error"]
        assert (asked.returncode, error["code"], error["holder"]["pid"]) == (6, "busy", run.pid)
        assert "cannot be seen from here" in error["message"]
        assert error["hint"] == "cancel it there, or wait for it"
        assert bench.events("r1") == before
        (bench.root / "gate").touch()
        assert run.end().code == 0
