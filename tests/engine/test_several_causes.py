"""One failure and what follows from it: dependants, the rest of the plan, and the exit code."""

from __future__ import annotations

import json

import yaml
from support.workbench import Workbench, shell, write


def test_dependants_of_a_failed_step_are_closed_without_running(bench: Workbench) -> None:
    """Direct and indirect ones; independent steps go on; each has a report that says why."""
    done = bench.run(
        shell("exit 1", owns=["x0"], title="fails"),
        write("one.txt", "1\n", needs=[0]),
        write("two.txt", "2\n", needs=[1]),
        write("three.txt", "3\n"),
    )
    assert (done.code, done.reasons) == (1, ["agent_failed", "dependency_failed", "dependency_failed", "merged"])
    assert "agent.subagent_started" not in bench.types("1")
    assert bench.types("2")[-1] == "agent.subagent_closed"
    assert bench.types("2").count("agent.subagent_closed") == 1
    for step in ("1", "2"):
        report = bench.call("report", "latest", "--step", step).out
        assert "dependency_failed" in report
    assert sorted(bench.tree(done.data["head"]))[-2:] == ["src/lib.py", "three.txt"]


def test_a_dependant_of_a_step_that_cannot_be_merged_is_not_merged_either(bench: Workbench) -> None:
    """It had already run on the parked work of the step that then conflicted: its own work is kept."""
    done = bench.run(
        shell("sleep 0.5; sed -i s/two/TWO/ a.txt", owns=["a.txt"]),
        shell("sed -i s/two/deux/ a.txt", owns=["a.txt"]),
        shell("echo 2 > two.txt", owns=["two.txt"], needs=[1]),
        overlap="allow",
        flags=("-j", "3"),
    )
    assert (done.code, done.reasons) == (4, ["merged", "merge_conflict", "dependency_failed"])
    assert bench.tree(done.data["head"])["a.txt"] == "one\nTWO\nthree"
    assert bench.tree(done.steps[2]["kept_ref"])["two.txt"] == "2"


def test_on_failure_stop_ends_what_runs_and_starts_nothing_more(bench: Workbench) -> None:
    """A running later step is ended and its work kept; the step before the failed one still is merged."""
    done = bench.run(
        shell("sleep 1; echo 0 > zero.txt", owns=["zero.txt"]),
        shell("sleep 0.5; echo begun > begun.txt; exit 1", owns=["begun.txt"]),
        shell("echo two > two.txt; sleep 30", owns=["two.txt"]),
        write("three.txt", "3\n", needs=[2]),
        on_failure="stop",
        flags=("-j", "3"),
    )
    assert (done.code, done.reasons) == (1, ["merged", "agent_failed", "stopped", "stopped"])
    assert bench.tree(done.steps[2]["kept_ref"])["two.txt"] == "two"
    assert "agent.subagent_started" not in bench.types("3")


def test_the_first_failed_step_in_plan_order_decides_the_exit_code(bench: Workbench) -> None:
    """Whatever failed first by the clock: ownership (5) stands before a plain failure (1) and a timeout (124)."""
    done = bench.run(
        shell("sleep 0.4; echo 1 > outside.txt", owns=["inside.txt"]),
        shell("exit 1", owns=["one"]),
        shell("sleep 30", owns=["two"], timeout="200ms"),
        flags=("-j", "3"),
    )
    assert (done.code, done.reasons) == (5, ["ownership_violation", "agent_failed", "timeout"])
    assert done.envelope["error"]["step"] == 0


def test_every_outcome_has_a_report_with_a_json_twin(bench: Workbench) -> None:
    """Success, failure, conflict, timeout and never started; front matter is YAML and agrees with the twin."""
    done = bench.run(
        shell("sed -i s/two/2/ a.txt", owns=["a.txt"]),
        shell("sed -i s/two/II/ a.txt", owns=["a.txt"]),
        shell("exit 1", owns=["x"]),
        shell("sleep 30", owns=["y"], timeout="200ms"),
        write("z.txt", "z\n", needs=[2]),
        overlap="allow",
    )
    assert done.reasons == ["merged", "merge_conflict", "agent_failed", "timeout", "dependency_failed"]
    for step in done.steps:
        text = (bench.files / step["report"]).read_text()
        front = yaml.safe_load(text.split("---\n")[1])
        twin = json.loads((bench.files / step["report"]).with_suffix(".json").read_text())
        assert (front["status"], front["reason"]) == (step["final_status"], step["close_reason"])
        assert {name: twin[name] for name in front} == front
        assert (bench.files / f".orchestrix/step-{step['idx']}-result.md").read_text() == text
    summary = bench.call("report", done.data["run_id"]).out
    assert all(f"| {reason} |" in summary for reason in done.reasons)
