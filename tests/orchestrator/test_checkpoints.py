"""Checkpoints: a projection of the log with the specified fields, whole or not at all, enough to make a lost run anew."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.coordinators import run_plan, started, wait_until
from support.workbench import Workbench, shell, write

from harness.errors import UsageError
from harness.orchestrator.workflow import WorkflowStateModel


def checkpoint_of(bench: Workbench, run: str = "r1") -> Path:
    return bench.files / f".orchestrix/local/runs/{run}/checkpoints/latest.json"


def waiting(bench: Workbench) -> Any:
    """A run that stopped at its budget with one of three steps merged, one of them nested."""
    nested = {"title": "nested", "owns": ["p/**"], "steps": [write("p/a.txt", "a\n")]}
    plan = run_plan(bench, nested, write("b.txt", "b\n", retries=2, priority=-1), write("c.txt", "c\n"))
    return bench.call(*plan, "--budget", "attempts=2", "-j", "1")


def test_a_checkpoint_has_the_fields_of_the_specification(bench: Workbench) -> None:
    """Tasks of nested runs stand under their parents, in order."""
    assert waiting(bench).code == 7
    saved = json.loads(checkpoint_of(bench).read_text())
    assert {name: saved[name] for name in ("schema_version", "workflow_id", "workflow_status", "final_response")} == {
        "schema_version": 2,
        "workflow_id": "r1",
        "workflow_status": "IN_PROGRESS",
        "final_response": "",
    }
    tasks = {task["task_id"]: task for task in saved["tasks"]}
    assert list(tasks) == ["0", "0.1", "1", "2"]
    assert [tasks[name]["status"] for name in ("0", "0.1")] == ["completed", "completed"]
    assert (tasks["0.1"]["parent_task_id"], tasks["0.1"]["depth"], tasks["1"]["priority"]) == ("0", 1, -1)
    assert tasks["0"]["subAgent_context"]["subAgent_id"] == "r1-s0"
    assert tasks["1"]["max_retries"] == 2
    assert "task_executor" in saved["executed_nodes"]
    assert [event["type"] for event in bench.events("r1")][-1] == "workflow_checkpoint"


def test_a_run_whose_database_is_gone_is_made_anew_and_carries_on(bench: Workbench) -> None:
    """Finished work is not done again; nested runs come back with it."""
    before = waiting(bench)
    shutil.copy(checkpoint_of(bench), bench.root / "saved.json")
    for path in (bench.files / ".orchestrix/local").glob("state.db*"):
        path.unlink()
    done = bench.call("resume", "--from-checkpoint", str(bench.root / "saved.json"), "--budget", "attempts=9", "--json")
    assert (done.code, done.reasons) == (0, ["merged"] * 3), done.out
    assert done.steps[0]["merge_commit"] == before.steps[0]["merge_commit"]
    assert [step["attempts"] for step in done.steps[1:]] == [1, 1]
    assert bench.call("audit", "r1").code == 0
    assert bench.call("status", "r1-s0").code == 0


def test_the_log_outranks_a_checkpoint(bench: Workbench) -> None:
    """Where the database knows the run, the old file changes nothing."""
    waiting(bench)
    shutil.copy(checkpoint_of(bench), bench.root / "old.json")
    assert bench.call("resume", "r1", "--budget", "attempts=9", "--json").code == 0
    length = len(bench.events("r1"))
    again = bench.call("resume", "--from-checkpoint", str(bench.root / "old.json"), "--json")
    assert (again.code, len(bench.events("r1"))) == (0, length)


def test_a_long_run_writes_checkpoints_on_its_way(bench: Workbench) -> None:
    """Now and then, while it waits for its agents."""
    plan = run_plan(bench, write("a.md", "a\n"), shell("echo > go.txt; sleep 600", owns=["go.txt"], needs=[0]))
    with started(bench, *plan, env={"ORCHESTRIX_CHECKPOINT_EVERY": "1ms"}) as run:
        run.until_logged("workflow_checkpoint")
        run.kill()
    assert WorkflowStateModel.load_checkpoint(checkpoint_of(bench)).workflow_id == "r1"
    bench.call("cancel", "r1")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema_version": 99}', '{"schema_version": 1}', '{"schema_version": 1, "tasks": [3]}', "\x00"],
)
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, text: str) -> None:
    """In words, whatever it is."""
    path = tmp_path / "checkpoint.json"
    path.write_text(text)
    with pytest.raises(UsageError):
        WorkflowStateModel.load_checkpoint(path)
    with pytest.raises(UsageError):
        WorkflowStateModel.load_checkpoint(tmp_path / "missing.json")


def as_version_1(path: Path) -> dict[str, Any]:
    """The checkpoint as the first version of the format wrote it."""
    data = json.loads(path.read_text())
    del data["harness_version"]
    for task in data["tasks"]:
        del task["execution_context"]["recommended_tools"]
    return {**data, "schema_version": 1}


def test_a_checkpoint_of_the_first_version_is_migrated_and_its_run_carries_on(bench: Workbench) -> None:
    """What that version did not know is filled in; nothing of what it knew is lost."""
    before = waiting(bench)
    old = as_version_1(checkpoint_of(bench))
    (bench.root / "old.json").write_text(json.dumps(old))
    migrated = WorkflowStateModel.load_checkpoint(bench.root / "old.json").model_dump()
    assert (migrated["schema_version"], migrated["harness_version"]) == (2, "")
    assert {name: migrated[name] for name in old if name not in ("schema_version", "tasks")} == {
        name: old[name] for name in old if name not in ("schema_version", "tasks")
    }
    for path in (bench.files / ".orchestrix/local").glob("state.db*"):
        path.unlink()
    done = bench.call("resume", "--from-checkpoint", str(bench.root / "old.json"), "--budget", "attempts=9", "--json")
    assert (done.code, done.reasons) == (0, ["merged"] * 3), done.out
    assert done.steps[0]["merge_commit"] == before.steps[0]["merge_commit"]


def test_a_newer_checkpoint_is_refused_before_anything_is_made(bench: Workbench) -> None:
    """With what to do about it; the database stays gone."""
    waiting(bench)
    newer = {**json.loads(checkpoint_of(bench).read_text()), "schema_version": 99, "future": {}}
    (bench.root / "newer.json").write_text(json.dumps(newer))
    done = bench.call("resume", "--from-checkpoint", str(bench.root / "newer.json"))
    assert done.code == 2
    assert "has checkpoint version 99; this harness reads 1 to 2" in done.err
    assert "update the harness" in done.err


def test_checkpoints_are_written_while_a_step_works_and_when_one_is_closed(bench: Workbench) -> None:
    """Every `checkpoint_every` although nothing happens, after each closed task, and at the end with the outcome."""
    gate = bench.root / "gate"
    quiet = shell(f"while ! test -e {gate}; do sleep 0.02; done; echo 1 > x.txt", owns=["x.txt"])
    plan = run_plan(bench, write("a.txt", "a\n"), quiet)
    with started(bench, *plan, env={"ORCHESTRIX_CHECKPOINT_EVERY": "200ms"}) as run:
        run.until_logged("agent.subagent_closed", task="0")
        run.until_logged("workflow_checkpoint", count=4)
        saved = WorkflowStateModel.load_checkpoint(checkpoint_of(bench))
        assert [task.status for task in saved.tasks] == ["completed", "in_progress"]
        gate.touch()
        assert run.end().code == 0
    saved = WorkflowStateModel.load_checkpoint(checkpoint_of(bench))
    assert (saved.workflow_status, [task.status for task in saved.tasks]) == ("COMPLETED", ["completed"] * 2)
    assert saved.logs["r1"][-1]["type"] == "run.finished"


def test_a_closed_task_is_in_the_checkpoint_long_before_it_is_old(bench: Workbench) -> None:
    """With an interval of an hour: what was closed before a kill is in the file."""
    gate = bench.root / "gate"
    quiet = shell(f"while ! test -e {gate}; do sleep 0.02; done", owns=["x.txt"])
    with started(
        bench, *run_plan(bench, write("a.txt", "a\n"), quiet), env={"ORCHESTRIX_CHECKPOINT_EVERY": "1h"}
    ) as run:
        run.until_logged("agent.subagent_closed", task="0")
        wait_until(lambda: checkpoint_of(bench).exists(), "the checkpoint")
        run.kill()
    saved = WorkflowStateModel.load_checkpoint(checkpoint_of(bench))
    assert saved.tasks[0].status == "completed"


def test_the_end_of_a_cancel_is_in_the_checkpoint(bench: Workbench) -> None:
    """With the nested run below it; a run that is made anew from it is cancelled, and carries on with successors."""
    gate = bench.root / "gate"
    quiet = shell(f"echo 1 > p/x.txt; while ! test -e {gate}; do sleep 0.02; done", owns=["p/x.txt"])
    nested = {"title": "nested", "owns": ["p/**"], "steps": [write("p/a.txt", "a\n"), {**quiet, "needs": [0]}]}
    with started(bench, *run_plan(bench, write("b.txt", "b\n"), nested)) as run:
        run.until_logged("agent.subagent_closed", task="0")
        run.until_written("p/x.txt")
        run.kill()
    assert bench.call("cancel", "r1").code == 0
    saved = WorkflowStateModel.load_checkpoint(checkpoint_of(bench))
    assert saved.logs["r1"][-1]["type"] == "run.finished"
    assert saved.logs["r1-s1"][-1]["type"] == "run.finished"
    assert "pending" not in (statuses := [task.status for task in saved.tasks]), statuses
    for path in (bench.files / ".orchestrix/local").glob("state.db*"):
        path.unlink()
    gate.touch()
    done = bench.call("resume", "--from-checkpoint", str(checkpoint_of(bench)), "--json")
    assert (done.code, done.reasons) == (0, ["merged"] * 2), done.out
