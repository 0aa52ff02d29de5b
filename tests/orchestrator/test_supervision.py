"""Every decision of a run is judged by the supervisor's rules, and the log is the decision trace."""

from __future__ import annotations

from typing import Any

import pytest
from support.coordinators import KILLED, ended, run_plan
from support.workbench import Workbench, shell, write

from harness.model import allowlists, supervision
from harness.orchestrator.nodes import NODES


def parent(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"title": "a step of steps", "owns": ["p/**"], "steps": list(steps), **fields}


def decisions(bench: Workbench, run: str = "r1") -> list[dict[str, Any]]:
    return [event["payload"] for event in bench.events(run) if event["type"] == "routing_decision"]


def configured(bench: Workbench, text: str) -> None:
    folder = bench.files / ".orchestrix"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text)
    (bench.files / ".git/info/exclude").write_text(".orchestrix/\n")


def test_the_log_is_the_decision_trace(bench: Workbench) -> None:
    """Decisions are numbered; a nested run is a SUBGRAPH decision, its end STOP_LOCAL, the end of the run STOP_GLOBAL."""
    assert bench.run(parent(write("p/a.txt", "a\n")), write("x.txt", "x\n"), flags=("--run-id", "r1")).code == 0
    outer, inner = decisions(bench), decisions(bench, "r1-s0")
    own = [fact["step"] for fact in outer]
    assert own == sorted(own)
    assert own[-1] == len(outer) + len(inner)  # those of the nested run count from when it returned
    assert [fact["step"] for fact in inner] == list(range(1, len(inner) + 1))
    assert {fact["depth"] for fact in outer} == {0}
    assert {fact["depth"] for fact in inner} == {1}
    kinds = {fact["chosen_node"]: fact["decision_kind"] for fact in outer}
    assert kinds.pop("subAgent_executor") == "SUBGRAPH"
    assert kinds.pop("finalizer") == "STOP_GLOBAL"
    assert set(kinds.values()) == {"NODE"}
    assert inner[-1]["decision_kind"] == "STOP_LOCAL"
    assert {fact["termination_reason"] for fact in (*outer, *inner)} == {None}


def _stopped(bench: Workbench, reason: str, run: str = "r1") -> None:
    """The run ended as a safe stop does: told in the trace, every child closed, nothing merged after it."""
    last = decisions(bench, run)[-1]
    assert (last["decision_kind"], last["termination_reason"], last["chosen_node"]) == (
        "STOP_GLOBAL",
        reason,
        "finalizer",
    )
    status = bench.call("status", run, "--json").data
    assert (status["status"], status["exit_code"], status["ended"]) == ("failed", 5, True)
    assert {step["state"] for step in status["steps"]} == {"closed"}
    assert reason in {step["close_reason"] for step in status["steps"]}


def test_one_decision_too_many_ends_the_run(bench: Workbench) -> None:
    """What is under way is ended and kept, the rest is closed; a retry begins to count anew."""
    began = bench.root / "began"
    slow = shell(f"echo half > slow.txt; touch {began}; sleep 600", needs=[0], owns=["slow.txt"])
    wait = f"while ! test -e {began}; do sleep 0.05; done"
    quick = shell(f"{wait}; echo z > z.txt", needs=[0], owns=["z.txt"])
    last = write("w.txt", "w\n", needs=[2])
    flags = ("--run-id", "r1", "-j", "4", "--budget", "max_steps=4", "--sandbox", "none")
    done = bench.run(write("x.txt", "x\n"), slow, quick, last, flags=flags)
    assert done.code == 5, done.out
    assert done.reasons[1:] == ["max_steps_exceeded"] * 3
    assert "step 5 is over max_steps 4" in done.steps[1]["message"]
    assert bench.tree(done.steps[1]["kept_ref"])["slow.txt"] == "half"
    _stopped(bench, "max_steps_exceeded")
    again = bench.call("retry", "r1", "2", "--json")
    assert [step["close_reason"] for step in again.steps][1:] == ["max_steps_exceeded", "merged", "merged"]


def test_a_run_that_needs_all_of_its_decisions_ends_well(bench: Workbench) -> None:
    """Two for its step; the end is not one too many."""
    done = bench.run(write("x.txt", "x\n"), flags=("--run-id", "r1", "--budget", "max_steps=2"))
    assert (done.code, done.reasons) == (0, ["merged"])
    assert [fact["step"] for fact in decisions(bench)] == [1, 2, 3]


@pytest.mark.parametrize("where", ["settings", "plan"])
def test_a_level_too_deep_ends_the_run(bench: Workbench, where: str) -> None:
    """Before anything is planned for it."""
    plan = {}
    if where == "settings":
        configured(bench, "[budget]\nmax_depth = 1\n")
    else:
        plan = {"budget": {"max_depth": 1}}
    deep = parent(parent(write("p/a.txt", "a\n")))
    done = bench.call(
        "run", str(bench.plan(deep, write("x.txt", "x\n", needs=[0]), **plan)), "--run-id", "r1", "--json"
    )
    assert (done.code, done.reasons) == (5, ["max_depth_exceeded", "max_depth_exceeded"]), done.out
    _stopped(bench, "max_depth_exceeded")
    _stopped(bench, "max_depth_exceeded", "r1-s0")  # a safe stop below ends the whole run
    assert [run["run_id"] for run in bench.call("list", "--all", "--json").data["runs"]] == ["r1-s0", "r1"]


def test_the_same_subgraph_too_often_ends_the_run(bench: Workbench) -> None:
    """A parent that is retried spawns again."""
    configured(bench, 'backoff_base = "1ms"\n[errors]\nNestedFailed = "retry"\n')
    child = shell("exit 1", owns=["p/a.txt"])
    flags = ("--run-id", "r1", "--budget", "max_reentry=2")
    done = bench.run(parent(child, retries=5), flags=flags)
    assert (done.code, done.reasons) == (5, ["cycle_detected"]), done.out
    _stopped(bench, "cycle_detected")
    assert [run["run_id"] for run in bench.call("list", "--all", "--json").data["runs"]] == ["r1-s0n2", "r1-s0", "r1"]


def test_a_persona_goes_where_its_allowlist_lets_it(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting narrows it; what it no longer holds ends the run."""
    monkeypatch.setenv("ORCHESTRIX_ALLOWLISTS", '{"AGENT_SUBAGENT": ["task_executor"]}')
    done = bench.run(parent(write("p/a.txt", "a\n")), flags=("--run-id", "r1"))
    assert (done.code, done.reasons) == (5, ["allowlist_violation"]), done.out
    assert "'spawn_subAgent' is not on the allowlist of 'AGENT_SUBAGENT'" in done.steps[0]["message"]
    _stopped(bench, "allowlist_violation")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ('{"AGENT_NOBODY": ["task_executor"]}', "'AGENT_NOBODY' is no persona"),
        ('{"AGENT_PARENT": ["task_executor"]}', "AGENT_PARENT is never sent to 'task_executor'"),
        ('{"AGENT_PARENT": 7}', "must be a list of nodes"),
    ],
)
def test_a_wrong_allowlist_is_named(bench: Workbench, monkeypatch: pytest.MonkeyPatch, given: str, says: str) -> None:
    """Narrowing only: a persona is never sent where the harness does not send it."""
    monkeypatch.setenv("ORCHESTRIX_ALLOWLISTS", given)
    refused = bench.call("config", "show")
    assert (refused.code, says in refused.err) == (3, True), refused


def test_a_repository_does_not_decide_about_allowlists(bench: Workbench) -> None:
    """It could give back what the user took away."""
    configured(bench, '[allowlists]\nAGENT_SUBAGENT = ["task_executor"]\n')
    refused = bench.call("config", "show")
    assert (refused.code, "allowlists" in refused.err) == (3, True), refused


def test_every_node_is_on_some_allowlist() -> None:
    """Or no decision could ever choose it."""
    assert {node for nodes in allowlists.DEFAULT.values() for node in nodes} == set(NODES)


@pytest.mark.parametrize(
    "place", ["after:routing_decision#4", "before:agent.subagent_failed", "after:agent.subagent_closed#2"]
)
def test_a_kill_during_a_safe_stop_is_finished_by_the_resume(bench: Workbench, place: str) -> None:
    """The intent is in the log: the next coordinator closes what is left, and decides nothing anew."""
    plan = run_plan(bench, write("x.txt", "x\n"), write("y.txt", "y\n", needs=[0]), write("z.txt", "z\n", needs=[1]))
    assert ended(bench, *plan, "--budget", "max_steps=3", env={"ORCHESTRIX_FAILPOINT": place}).code == KILLED
    assert bench.call("resume", "r1").code == 5
    _stopped(bench, "max_steps_exceeded")


def test_the_library_and_a_run_are_judged_by_the_same_rules() -> None:
    """Limits are inclusive; 0 allows nothing."""
    assert supervision.over_steps(40, 40, None, None) is None
    assert supervision.over_steps(1, 0, None, None) == supervision.Verdict(
        "STOP_GLOBAL", None, None, "step 1 is over max_steps 0", "max_steps_exceeded"
    )
    assert supervision.off_allowlist(None, "s", "a") is None
    assert supervision.off_allowlist((), "s", "a") is not None
    assert (supervision.end_of_level(0), supervision.end_of_level(1)) == ("STOP_GLOBAL", "STOP_LOCAL")
