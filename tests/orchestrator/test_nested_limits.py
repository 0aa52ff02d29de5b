"""A parent's time limit, a fault inside of a nested run, and what its children are told."""

from __future__ import annotations

import json
import signal
from datetime import datetime
from typing import Any

import pytest
from support.coordinators import KILLED, ended, run_plan, started
from support.workbench import Workbench, shell, write


def parent(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"title": "a step of steps", "owns": ["p/**"], "steps": list(steps), **fields}


def states(bench: Workbench, run: str) -> list[tuple[str, str, str]]:
    steps = bench.call("status", run, "--json").steps
    return [(step["state"], step["final_status"], step["close_reason"]) for step in steps]


def configured(bench: Workbench, text: str) -> None:
    folder = bench.files / ".orchestrix"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text)
    (bench.files / ".git/info/exclude").write_text(".orchestrix/\n")


OVERDUE = ("closed", "failed", "timeout")
MERGED = ("closed", "completed", "merged")


def test_a_parents_time_limit_binds_all_of_its_steps(bench: Workbench) -> None:
    """No child alone is over its limit, all together are: each is closed, what was merged is kept, the others go on."""
    done = bench.run(
        parent(
            write("p/a.txt", "a\n"),
            parent(shell("echo half > p/b.txt; sleep 600", owns=["p/b.txt"], timeout="1h"), needs=[0], timeout="1h"),
            shell("true", needs=[1], owns=["p/c.txt"], allow_empty=True),
            timeout="4s",
        ),
        write("x.txt", "x\n"),
        flags=("--run-id", "r1"),
    )
    assert (done.code, done.reasons) == (124, ["timeout", "merged"]), done.out
    assert "did not end within 4.0s" in done.steps[0]["message"]
    assert states(bench, "r1-s0") == [MERGED, OVERDUE, OVERDUE]
    assert states(bench, "r1-s0-s2") == [OVERDUE]
    assert bench.tree(done.steps[0]["kept_ref"])["p/a.txt"] == "a"
    inner = bench.call("status", "r1-s0-s2", "--json").steps[0]["kept_ref"]
    assert bench.tree(inner)["p/b.txt"] == "half"


def test_the_time_before_a_resume_counts(bench: Workbench) -> None:
    """What was used up before the signal is not given again."""
    step = parent(shell("sleep 5; mkdir p; echo 1 > p/a.txt; sleep 600", owns=["p/a.txt"]), timeout="8s")
    with started(bench, *run_plan(bench, step)) as run:
        run.until_written("p/a.txt")
        run.send(signal.SIGTERM)
        assert run.end().code == 143
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons) == (124, ["timeout"]), done.out
    spent = [event["ts"] for event in bench.events("r1-s0") if event["type"] in ("run.started", "run.cancelled")]
    assert len(spent) == 6  # started, stopped, started again, stopped by the limit, to end, started to end it
    first, second = (_seconds(spent[0], spent[1]), _seconds(spent[2], spent[3]))
    assert first >= 5  # the step itself slept that long
    assert second < 8  # given anew, the limit alone would take this long


def _seconds(one: str, other: str) -> float:
    return (datetime.fromisoformat(other) - datetime.fromisoformat(one)).total_seconds()


@pytest.mark.parametrize(
    "place", ["after:run.cancelled", "before:agent.subagent_failed", "before:run.finished", "before:subagent_returned"]
)
def test_a_kill_while_the_limit_is_enforced(bench: Workbench, place: str) -> None:
    """The resume finishes what was begun: the same reason, one end."""
    plan = run_plan(bench, parent(shell("sleep 600", owns=["p/a.txt"]), timeout="1s"))
    assert ended(bench, *plan, env={"ORCHESTRIX_FAILPOINT": place}).code == KILLED
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons) == (124, ["timeout"]), done.out
    assert states(bench, "r1-s0") == [OVERDUE]


def test_written_steps_are_recovered_by_doing_them_again(bench: Workbench) -> None:
    """There is no agent for `steps`: the recovery runs them, told of the failure."""
    configured(bench, '[errors]\nNestedFailed = "spawn_recovery"\n')
    script = 'grep -q "last attempt failed" "$ORCHESTRIX_PROMPT_FILE" && mkdir p && echo 1 > p/a.txt'
    done = bench.run(parent(shell(script, owns=["p/a.txt"])), flags=("--run-id", "r1"))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out


def test_a_recovery_of_written_steps_that_fails_is_the_end(bench: Workbench) -> None:
    """Also where the steps have steps, which a recovery may not spawn; the step beside it is merged."""
    configured(bench, '[errors]\nNestedFailed = "spawn_recovery"\n')
    done = bench.run(parent(parent(shell("exit 3", owns=["p/a.txt"]))), write("x.txt", "x\n"), flags=("--run-id", "r1"))
    assert (done.code, done.reasons) == (1, ["nested_failed", "merged"]), done.out
    assert bench.call("status", "r1-s0n2", "--json").reasons == ["tool_denied"]


def test_a_fault_inside_of_a_nested_run_fails_its_step(bench: Workbench) -> None:
    """Git cannot make the nested run's branch: the step fails and names the cause, the one beside it is merged."""
    bench.git("branch", "orchestrix/r1-s0")
    done = bench.run(
        parent(write("p/a.txt", "a\n")), write("x.txt", "x\n"), flags=("--run-id", "r1", "--sandbox", "none")
    )
    assert (done.code, done.reasons) == (1, ["nested_failed", "merged"]), done.out
    assert "orchestrix/r1-s0" in done.steps[0]["message"]
    assert states(bench, "r1-s0") == [("closed", "failed", "stopped")]
    bench.git("branch", "-D", "orchestrix/r1-s0")  # in the way of the ref that the checker looks for
    bench.git("branch", "orchestrix/r1-s0/integration", done.data["base"])


def test_children_know_the_prompt_and_their_parents_step(bench: Workbench) -> None:
    """On every level: the run's own goal, and the step that the child is a part of."""
    inner = parent(write("p/a.txt", "a\n"), title="the inner one", description="of two levels")
    done = bench.run(parent(inner, title="the outer one"), goal="Reach the goal", flags=("--run-id", "r1"))
    assert done.code == 0, done.out
    told = []
    for run in ("r1", "r1-s0", "r1-s0-s1"):
        created = next(event for event in bench.events(run) if event["type"] == "agent.subagent_created")
        about = created["payload"]["contract"]["parent"]
        told.append((about["run_id"], about["task_prompt"], about["goal_summary"]))
    assert told == [
        ("r1", "Reach the goal", "Reach the goal"),
        ("r1-s0", "Reach the goal", "the outer one"),
        ("r1-s0-s1", "Reach the goal", "the inner one\n\nof two levels"),
    ]


def test_one_timeline_of_a_run_and_those_below_it(bench: Workbench) -> None:
    """Every event once, each run in its own order, a child between its spawn and its return; the path id stands before each."""
    inner = parent(write("p/a.txt", "a\n"))
    assert bench.run(parent(inner), write("x.txt", "x\n"), flags=("--run-id", "r1")).code == 0
    out = bench.call("events", "r1", "--nested", "--json").out
    told = [json.loads(line) for line in out.splitlines()]
    runs = ("r1", "r1-s0", "r1-s0-s1")
    assert {run: [event for event in told if event["run_id"] == run] for run in runs} == {
        run: bench.events(run) for run in runs
    }
    for run in runs[1:]:
        own = [place for place, event in enumerate(told) if event["run_id"] == run]
        ends = [place for place, event in enumerate(told) if event["payload"].get("child_run") == run]
        assert ends[0] < own[0] < own[-1] < ends[1]
    assert [event["ts"] for event in told] == sorted(event["ts"] for event in told)
    shown = bench.call("events", "r1", "--nested").out.splitlines()
    assert (len(shown), any(line.split()[2] == "0.1.1" for line in shown)) == (len(told), True)
    assert bench.call("events", "r1", "--nested", "--after", "3").code == 2


def test_retries_of_a_child_do_not_begin_its_parent_again(bench: Workbench) -> None:
    """The parent's time limit is one limit: a parent that says no `retries` has one attempt."""
    began = bench.root / "began"
    child = shell(f"echo x >> {began}; sleep 600", owns=["p/a.txt"], retries=3, timeout="1h")
    done = bench.run(parent(child, timeout="2s"), flags=("--run-id", "r1", "--sandbox", "none"))
    assert (done.code, done.reasons) == (124, ["timeout"])
    assert began.read_text().count("x") == 1
    assert [run["run_id"] for run in bench.call("list", "--all", "--json").data["runs"]] == ["r1-s0", "r1"]
