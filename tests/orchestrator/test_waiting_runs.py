"""Runs that stop for a person: escalations are approved or rejected, budgets are raised, and nothing is lost meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from support.workbench import Workbench, shell, write

WAITING = 7


def configured(bench: Workbench, text: str) -> None:
    folder = bench.files / ".orchestrix"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text)
    (bench.files / ".git/info/exclude").write_text(".orchestrix/\n")


def of_type(bench: Workbench, kind: str) -> list[dict[str, Any]]:
    return [event["payload"] for event in bench.events() if event["type"] == kind]


def until_repaired(bench: Workbench, **fields: Any) -> dict[str, Any]:
    return shell(
        f"test -e {bench.root / 'repaired'} && echo done > x.txt", title="needs repair", owns=["x.txt"], **fields
    )


def test_an_escalated_step_waits_for_a_person_while_the_others_go_on(bench: Workbench) -> None:
    """Visibly, with a code of its own; approved, it is tried once more."""
    configured(bench, '[errors]\nAgentFailed = "escalate"\n')
    first = bench.run(until_repaired(bench), write("y.txt", "y\n"))
    assert first.code == WAITING
    assert first.envelope["error"]["code"] == "run_waits"
    assert first.data["waiting"] == "step 0 needs a decision"
    assert [step["state"] for step in first.steps] == ["running", "waiting_for_merge"]
    shown = bench.call("status").out
    assert "waits: step 0 needs a decision" in shown
    assert f"next: orchestrix approve {first.data['run_id']} 0" in shown
    (bench.root / "repaired").touch()
    second = bench.call("approve", "latest", "0", "--note", "repaired it", "--json")
    assert (second.code, second.reasons) == (0, ["merged", "merged"])
    assert of_type(bench, "task_approved") == [{"task": "0", "note": "repaired it"}]


def test_a_rejected_step_has_failed_and_the_others_are_kept(bench: Workbench) -> None:
    """The run ends as it would have without the question."""
    configured(bench, '[errors]\nAgentFailed = "escalate"\n')
    bench.run(until_repaired(bench), write("y.txt", "y\n"))
    assert bench.call("resume", "--json").code == WAITING
    ended = bench.call("reject", "latest", "0", "--json")
    assert (ended.code, ended.reasons) == (1, ["agent_failed", "merged"])
    assert "y.txt" in bench.tree(ended.data["head"])


def test_nobody_can_decide_what_nobody_asked(bench: Workbench) -> None:
    """A step that does not wait is left alone."""
    bench.run(write("y.txt", "y\n"))
    for command in ("approve", "reject"):
        assert bench.call(command, "latest", "0").code == 2


def test_a_conflict_is_done_again_on_the_integration_head(bench: Workbench) -> None:
    """Only where the map says so; the later step then sees what it collided with."""
    configured(bench, '[errors]\nMergeConflict = "retry"\n')
    done = bench.run(
        shell("echo zero >> a.txt", owns=["a.txt"]),
        shell("echo one >> a.txt", owns=["a.txt"]),
        shell("grep -q one a.txt && echo two > b.txt", needs=[1], owns=["b.txt"]),
        overlap="allow",
        flags=("-j", "2"),
    )
    assert (done.code, done.reasons) == (0, ["merged", "merged", "merged"])
    assert bench.tree(done.data["head"])["a.txt"] == "one\ntwo\nthree\nzero\none"
    assert [fact["reason"] for fact in of_type(bench, "integration.refused")] == ["merge_conflict"]


def test_an_escalated_conflict_is_done_again_when_it_is_approved(bench: Workbench) -> None:
    """The parked work stays parked meanwhile, and what comes after it waits for its turn."""
    configured(bench, '[errors]\nMergeConflict = "escalate"\n')
    steps = [shell(f"echo {word} >> a.txt", owns=["a.txt"]) for word in ("zero", "one")]
    first = bench.run(*steps, write("y.txt", "y\n"), overlap="allow")
    assert first.code == WAITING
    assert [step["state"] for step in first.steps] == ["closed", "waiting_for_merge", "waiting_for_merge"]
    second = bench.call("approve", "latest", "1", "--json")
    assert (second.code, second.reasons) == (0, ["merged", "merged", "merged"])


@pytest.mark.parametrize("where", ["flag", "plan", "settings"])
def test_a_budget_that_ends_stops_the_run_and_more_carries_on(bench: Workbench, where: str) -> None:
    """What is done is integrated; the rest waits."""
    if where == "settings":
        configured(bench, "[budget]\nattempts = 2\n")
    flags = ("--budget", "attempts=2") if where == "flag" else ()
    fields = {"budget": {"attempts": 2}} if where == "plan" else {}
    first = bench.run(*(write(f"{n}.txt", "x\n") for n in range(3)), flags=("-j", "1", *flags), **fields)
    assert first.code == WAITING
    assert first.data["waiting"] == "budget attempts: 2 of 2 used"
    assert [step["final_status"] for step in first.steps] == ["completed", "completed", None]
    second = bench.call("resume", "latest", "--budget", "attempts=3", "--json")
    assert (second.code, second.reasons) == (0, ["merged", "merged", "merged"])


def test_a_wrong_budget_is_refused_before_anything_starts(bench: Workbench) -> None:
    """Names and amounts."""
    for word in ("coffee=3", "tokens=", "tokens=-1", "wall_time=soon"):
        assert bench.run(write("y.txt", "y\n"), flags=("--budget", word)).code == 2
