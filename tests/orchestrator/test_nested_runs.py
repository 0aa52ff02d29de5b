"""A step that is split becomes the parent of a nested run: same engine, one level deeper, never wider than its parent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.coordinators import KILLED, ended, run_plan
from support.workbench import Workbench, shell, write

from harness.model import limits


def parent(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"title": "a step of steps", "steps": list(steps), **fields}


def of_type(bench: Workbench, kind: str, run: str = "latest") -> list[dict[str, Any]]:
    return [event["payload"] for event in bench.events(run) if event["type"] == kind]


def test_a_step_of_steps_is_merged_when_all_of_its_own_are(bench: Workbench) -> None:
    """Children are numbered from 1, merged into the parent's branch, then into the run."""
    done = bench.run(
        write("x.txt", "x\n"),
        parent(write("p/a.txt", "a\n"), shell("cat p/a.txt > p/b.txt", needs=[0], owns=["p/b.txt"]), owns=["p/**"]),
        shell("cat p/b.txt > y.txt", needs=[1], owns=["y.txt"]),
        flags=("--run-id", "r1"),
    )
    assert (done.code, done.reasons) == (0, ["merged", "merged", "merged"])
    tree = bench.tree(done.data["head"])
    assert (tree["p/a.txt"], tree["p/b.txt"], tree["y.txt"]) == ("a", "a", "a")
    spawned = of_type(bench, "subagent_spawned")[0]
    assert (spawned["parent_task_id"], spawned["subagent_id"], spawned["tasks_count"]) == ("1", "1.1", 2)
    assert [step["task_id"] for step in bench.call("status", "r1-s1", "--json").steps] == ["1.1", "1.2"]
    assert (bench.files / ".orchestrix/step-1.2-result.md").read_text().startswith("---")
    nodes = [fact["chosen_node"] for fact in of_type(bench, "routing_decision") if fact["task"] == "1"]
    assert nodes == [
        "complexity_analyzer",
        "spawn_subAgent",
        "subAgent_executor",
        "subAGENT_finalizer",
        "task_updater",
    ]


def test_nested_runs_are_told_with_their_parent(bench: Workbench) -> None:
    """`list` and `latest` mean runs that a person started; `status` shows the tree."""
    bench.run(parent(write("p/a.txt", "a\n"), owns=["p/**"]), flags=("--run-id", "r1"))
    assert [run["run_id"] for run in bench.call("list", "--json").data["runs"]] == ["r1"]
    assert [run["run_id"] for run in bench.call("list", "--all", "--json").data["runs"]] == ["r1-s0", "r1"]
    assert "0.1" in bench.call("status").out


def test_a_child_that_fails_fails_its_parent_and_its_brothers_are_kept(bench: Workbench) -> None:
    """The parent names the cause; what was integrated below it stays reachable."""
    done = bench.run(
        parent(write("p/a.txt", "a\n"), shell("exit 3", owns=["p/b.txt"]), owns=["p/**"]),
        write("x.txt", "x\n"),
    )
    assert (done.code, done.reasons) == (1, ["nested_failed", "merged"])
    assert "step 0.2 failed: agent_failed" in done.steps[0]["message"]
    assert bench.tree(done.steps[0]["kept_ref"])["p/a.txt"] == "a"


def test_the_parents_own_checks_and_boundary_judge_the_whole(bench: Workbench) -> None:
    """A check of the parent runs on what its children made together."""
    done = bench.run(parent(write("p/a.txt", "a\n"), owns=["p/**"], checks=["test -e p/b.txt"]))
    assert (done.code, done.reasons) == (5, ["check_failed"])


def test_a_plan_whose_children_reach_beyond_their_parent_is_refused(bench: Workbench) -> None:
    """With the place of the mistake."""
    refused = bench.run(parent(write("q/a.txt", "a\n"), owns=["p/**"]))
    assert refused.code == 2
    assert refused.envelope["error"]["errors"][0]["field"] == "steps[0].steps[0].owns"


def test_steps_of_steps_of_steps(bench: Workbench) -> None:
    """As deep as the plan says; ids grow with it."""
    inner = parent(write("p/a.txt", "a\n"), owns=["p/a.txt"])
    done = bench.run(parent(inner, write("p/b.txt", "b\n"), owns=["p/**"]), flags=("--run-id", "r1"))
    assert done.code == 0, done.out
    assert [step["task_id"] for step in bench.call("status", "r1-s0-s1", "--json").steps] == ["0.1.1"]


@pytest.mark.parametrize(
    "place",
    [
        "after:routing_decision#2",
        "after:subagent_spawned",
        "before:subagent_returned",
        "after:subagent_returned",
        "before:snapshot.taken#2",
    ],
)
def test_a_kill_between_a_decision_and_its_effect_is_carried_out_by_the_resume(bench: Workbench, place: str) -> None:
    """Nothing is decided, spawned or merged twice."""
    plan = run_plan(bench, parent(write("p/a.txt", "a\n"), owns=["p/**"]), write("x.txt", "x\n"))
    assert ended(bench, *plan, env={"ORCHESTRIX_FAILPOINT": place}).code == KILLED
    done = bench.call("resume", "r1", "--json")
    assert (done.code, done.reasons) == (0, ["merged", "merged"]), done.out
    assert len(of_type(bench, "subagent_spawned", "r1")) == 1
    decided = [(fact["task"], fact["chosen_node"]) for fact in of_type(bench, "routing_decision", "r1")]
    assert len(decided) == len(set(decided))


def settings(bench: Workbench, text: str) -> None:
    """The project's settings, invisible to git."""
    folder = bench.files / ".orchestrix"
    folder.mkdir()
    (folder / "config.toml").write_text(text)
    (bench.files / ".git/info/exclude").write_text(".orchestrix/\n")


def test_a_recovery_gets_the_failure_and_less_of_everything(bench: Workbench) -> None:
    """It sees why the step failed; it has no retry and no recovery of its own."""
    folder = bench.files / ".orchestrix"
    folder.mkdir()
    (folder / "config.toml").write_text('[errors]\nAgentFailed = "spawn_recovery"\n')
    (bench.files / ".git/info/exclude").write_text(".orchestrix/\n")
    script = 'cp "$ORCHESTRIX_PROMPT_FILE" x.txt; grep -q "last attempt failed" x.txt || { echo broken; exit 3; }'
    done = bench.run(shell(script, owns=["x.txt"], retries=0, timeout="60s"), flags=("--run-id", "r1"))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    contract = of_type(bench, "agent.subagent_created", "r1-s0")[0]["contract"]
    assert contract["execution"]["attempt_timeout_ms"] == 30_000
    assert contract["permissions"]["can_spawn_children"] is False
    assert contract["persona"] == "AGENT_RECOVERY"
    roles = {(fact["chosen_node"], fact["persona"]) for fact in of_type(bench, "routing_decision", "r1")}
    recovering = {"spawn_subAgent", "subAgent_executor", "subAGENT_finalizer"}
    assert {role for node, role in roles if node in recovering} == {"AGENT_RECOVERY"}
    inside = of_type(bench, "routing_decision", "r1-s0")
    assert {fact["persona"] for fact in inside if fact["chosen_node"] == "task_executor"} == {"AGENT_RECOVERY"}


def test_a_recovery_that_fails_is_the_end(bench: Workbench) -> None:
    """No ping-pong: one recovery, then the step has failed."""
    folder = bench.files / ".orchestrix"
    folder.mkdir()
    (folder / "config.toml").write_text('[errors]\nAgentFailed = "spawn_recovery"\nNestedFailed = "spawn_recovery"\n')
    (bench.files / ".git/info/exclude").write_text(".orchestrix/\n")
    done = bench.run(shell("exit 3", owns=["x.txt"]), write("y.txt", "y\n"))
    assert (done.code, done.reasons) == (1, ["agent_failed", "merged"])
    assert done.steps[0]["message"].startswith("the recovery failed, too: nested_failed: ")
    assert len(of_type(bench, "subagent_spawned")) == 1


def test_a_recovery_that_fails_keeps_the_exit_code_of_the_first_cause(bench: Workbench) -> None:
    """A time limit stays a time limit for whatever reads the exit code, though the recovery failed otherwise."""
    settings(bench, '[errors]\nTimeoutError = "spawn_recovery"\n')
    script = 'grep -q "last attempt failed" "$ORCHESTRIX_PROMPT_FILE" && exit 3; sleep 60'
    done = bench.run(shell(script, title="slow", owns=["x.txt"], timeout="1s"))
    assert (done.code, done.reasons) == (124, ["timeout"])


def test_caps_of_personas_bind_and_are_written_into_the_contract(bench: Workbench, monkeypatch) -> None:
    """Settings of the user override what comes with the harness, and the retry of a failed step is held to them."""
    caps = {"AGENT_PERFORM_ERROR_FALLBACK": {"tools": ["read_file"]}, "AGENT_SUBAGENT": {"timeout_share": 0.5}}
    monkeypatch.setenv("ORCHESTRIX_PERSONAS", json.dumps(caps))
    child = shell("echo a > p/a.txt", owns=["p/a.txt"], setup=["mkdir -p p"], timeout="40s")
    done = bench.run(
        shell("echo x > x.txt; exit 3", owns=["x.txt"], retries=1),
        parent(child, owns=["p/**"], timeout="40s"),
        flags=("--run-id", "r1"),
    )
    assert done.reasons == ["contract_refused", "merged"]
    assert done.steps[0]["attempts"] == 2
    written = of_type(bench, "agent.subagent_created", "r1")[0]["contract"]
    assert (written["persona"], written["caps"]["AGENT_PERFORM_ERROR_FALLBACK"]["tools"]) == (
        "AGENT_PERFORM_TASK",
        ["read_file"],
    )
    inner = of_type(bench, "agent.subagent_created", "r1-s1")[0]["contract"]
    assert (inner["persona"], inner["execution"]["attempt_timeout_ms"]) == ("AGENT_SUBAGENT", 20_000)
    roles = [
        fact["persona"] for fact in of_type(bench, "routing_decision", "r1") if fact["chosen_node"] == "task_executor"
    ]
    assert roles == ["AGENT_PERFORM_TASK", "AGENT_PERFORM_ERROR_FALLBACK"]


def test_a_denial_names_the_path_of_the_step(bench: Workbench) -> None:
    """Of a nested step it is `1.1`, not its place in the nested plan."""
    child = write("p/a.txt", "a\n", owns=["p/a.txt"], allowed_tools=["read_file"])
    done = bench.run(write("x.txt", "x\n"), parent(child, owns=["p/**"]), flags=("--run-id", "r1"))
    assert done.reasons == ["merged", "nested_failed"]
    (denied,) = of_type(bench, "tool.denied", "r1-s1")
    assert denied["message"].startswith("step 1.1 may not use the tool write_file")


def test_settings_give_time_and_retries_where_the_plan_says_none(bench: Workbench, monkeypatch) -> None:
    """The plan's own words come first."""
    monkeypatch.setenv("ORCHESTRIX_TIMEOUT", "77s")
    monkeypatch.setenv("ORCHESTRIX_RETRIES", "2")
    bench.run(write("x.txt", "x\n"), write("y.txt", "y\n", timeout="5s", retries=0), flags=("--run-id", "r1"))
    made = [fact["contract"]["execution"] for fact in of_type(bench, "agent.subagent_created", "r1")]
    assert [(one["attempt_timeout_ms"], one["max_retries"]) for one in made] == [(77_000, 2), (5_000, 0)]


def test_a_nested_step_is_approved_by_its_path(bench: Workbench) -> None:
    """The run that a person started waits with it, says which step, and goes on with it."""
    folder = bench.files / ".orchestrix"
    folder.mkdir()
    (folder / "config.toml").write_text('[errors]\nAgentFailed = "escalate"\n')
    (bench.files / ".git/info/exclude").write_text(".orchestrix/\n")
    mended = bench.root / "mended"
    child = shell(f"test -e {mended} && echo a > p/a.txt || exit 3", owns=["p/a.txt"], setup=["mkdir -p p"])
    first = bench.run(write("x.txt", "x\n"), parent(child, owns=["p/**"]))
    assert (first.code, first.data["waiting"]) == (7, "step 1.1 needs a decision")
    mended.touch()
    done = bench.call("approve", "latest", "1.1", "--json")
    assert (done.code, done.reasons) == (0, ["merged", "merged"])


def test_a_nested_run_uses_its_parents_budget(bench: Workbench) -> None:
    """It stops where the parent would, and goes on when the parent is given more."""
    children = [write(f"p/{name}.txt", "x\n") for name in "abc"]
    first = bench.run(parent(*children, owns=["p/**"]), flags=("--budget", "attempts=2", "-j", "1"))
    assert (first.code, first.data["waiting"]) == (7, "budget attempts: 2 of 2 used")
    done = bench.call("resume", "latest", "--budget", "attempts=4", "--json")
    assert (done.code, done.reasons) == (0, ["merged"])


def test_restore_brings_back_what_nested_runs_kept(bench: Workbench) -> None:
    """By the run, by the parent's number and by the child's path id; earlier spawns of a retried parent count."""
    child = shell("mkdir -p p; echo half > p/a.txt; exit 1", owns=["p/a.txt"], retries=0)
    assert bench.run(parent(child, write("p/b.txt", "b\n"), owns=["p/**"]), flags=("--run-id", "r1")).code == 1
    assert bench.call("retry", "r1", "0").code == 1
    kept = bench.git("for-each-ref", "--format=%(refname)", "refs/orchestrix/keep").splitlines()
    assert kept == [
        "refs/orchestrix/keep/r1-s0/0.1/attempt-1",
        "refs/orchestrix/keep/r1-s0n2/0.1/attempt-1",
        "refs/orchestrix/keep/r1/0/attempt-1",
        "refs/orchestrix/keep/r1/0/attempt-1-2",
    ]
    for args in (("r1",), ("r1", "0"), ("r1", "0.1")):
        rows = bench.call("restore", *args, "--json").data["restored"]
        half = [row["branch"] for row in rows if row["task_id"] == "0.1"]
        assert half == ["orchestrix-restore/r1-s0/0.1", "orchestrix-restore/r1-s0n2/0.1"], args
        assert [bench.tree(branch)["p/a.txt"] for branch in half] == ["half", "half"]
    assert {row["task_id"] for row in rows} == {"0.1"}
    assert "no step '0.7'" in bench.call("restore", "r1", "0.7").err


@pytest.mark.parametrize("verb", [("resume",), ("retry", "0.1"), ("cancel",), ("land", "--into", "main"), ("land",)])
def test_a_nested_run_is_changed_through_its_parent_only(bench: Workbench, verb: tuple[str, ...]) -> None:
    """Its parent's gate, time limit and end bind it: what the parent refused cannot be landed, what is closed stays so."""
    main = bench.git("rev-parse", "main")
    refused = parent(write("p/a.txt", "a\n"), owns=["p/**"], checks=["false"])
    assert bench.run(refused, flags=("--run-id", "r1")).code == 5
    before = [len(bench.events(run)) for run in ("r1", "r1-s0")]
    done = bench.call(verb[0], "r1-s0", *verb[1:])
    assert (done.code, "run r1-s0 is part of run r1" in done.err) == (2, True), done
    top = "orchestrix retry r1 0" if verb[0] == "retry" else f"orchestrix {verb[0]} r1"
    assert top in done.err
    assert [len(bench.events(run)) for run in ("r1", "r1-s0")] == before
    assert bench.git("rev-parse", "main") == main
    assert "r1-s0" not in bench.call("status", "r1-s0").out.partition("next:")[2]


def test_runs_have_as_many_levels_as_plans_may_have(bench: Workbench) -> None:
    """Also below the longest name that a person may give; a longer one is refused before there is a run."""
    step = write("p/a.txt", "a\n")
    for _ in range(limits.DELEGATION_LEVELS):
        step = parent(step, owns=["p/**"])
    name = "r" * limits.RUN_ID_CHARS
    done = bench.run(step, flags=("--run-id", name))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out + done.err
    assert bench.tree(done.data["head"])["p/a.txt"] == "a"
    assert bench.call("run", str(bench.root / "plan.json"), "--run-id", f"{name}r").code == 2


def test_a_failed_recovery_leaves_the_first_attempts_work_kept(bench: Workbench) -> None:
    """Both are kept, under refs of their own."""
    (bench.files / ".orchestrix").mkdir(exist_ok=True)
    (bench.files / ".orchestrix/config.toml").write_text('[errors]\nAgentFailed = "spawn_recovery"\n')
    (bench.files / ".git/info/exclude").write_text(".orchestrix/\n")
    count = bench.root / "count"
    script = f"echo x >> {count}; wc -l < {count} > turn.txt; exit 1"
    done = bench.run(shell(script, owns=["turn.txt"], retries=0), flags=("--run-id", "r1", "--sandbox", "none"))
    assert done.code == 1
    kept = bench.git("for-each-ref", "--format=%(refname)", "refs/orchestrix/keep").splitlines()
    assert sorted(bench.tree(ref)["turn.txt"].strip() for ref in kept if "attempt" in ref) == ["1", "2"], kept
