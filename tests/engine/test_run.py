"""A plan becomes merged, verified commits."""

from __future__ import annotations

import json
import sqlite3

from support.workbench import Workbench, shell, write


def test_steps_are_merged_in_plan_order_whatever_their_finish_order(bench: Workbench) -> None:
    """The slow first step is the first merge; the user's checkout does not move."""
    before = bench.git("rev-parse", "HEAD")
    done = bench.run(
        shell("sleep 0.3; echo slow > slow.txt", owns=["slow.txt"]),
        shell("echo quick > quick.txt", owns=["quick.txt"]),
        write("third.txt", "third\n"),
        flags=("-j", "3"),
    )
    assert done.code == 0
    assert done.reasons == ["merged"] * 3
    subjects = bench.git("log", "--first-parent", "--format=%s", f"{done.data['base']}..{done.data['head']}")
    assert [line.split(":")[0] for line in subjects.splitlines()] == ["Merge step 2", "Merge step 1", "Merge step 0"]
    assert bench.git("rev-parse", "HEAD") == before
    assert bench.git("status", "--porcelain") == ""
    assert bench.tree(done.data["head"])["slow.txt"] == "slow"


def test_a_child_goes_through_the_events_of_the_specification(bench: Workbench) -> None:
    """created, started, attempt, waiting_for_merge, worktree_merged, closed; the close carries its four fields."""
    bench.run(write("x.txt", "x\n"))
    agent = [kind for kind in bench.types("0") if kind.startswith("agent.")]
    assert agent == [
        "agent.subagent_created",
        "agent.subagent_started",
        "agent.subagent_attempt",
        "agent.subagent_waiting_for_merge",
        "agent.worktree_merged",
        "agent.subagent_closed",
    ]
    closed = [event for event in bench.events() if event["type"] == "agent.subagent_closed"]
    run = closed[0]["run_id"]
    assert [event["payload"] for event in closed] == [
        {
            "sub_agent_id": f"{run}/0",
            "step_idx": 0,
            "task": "0",
            "final_status": "completed",
            "close_reason": "merged",
        }
    ]


def test_the_contract_is_persisted_with_the_fields_of_the_specification(bench: Workbench) -> None:
    """`sub_agents.context_json` holds parent, step, permissions, execution and outputs."""
    bench.run(write("x.txt", "x\n", description="Do it", success_criteria=["it is there"]), goal="A goal")
    database = sqlite3.connect(bench.files / ".orchestrix/local/state.db")
    (text,) = database.execute("select context_json from sub_agents").fetchone()
    database.close()
    contract = json.loads(text)
    assert contract["parent"]["task_prompt"] == "A goal"
    assert contract["parent"]["step_idx"] == 0
    assert contract["step"] == {
        "title": "write x.txt",
        "description": "Do it",
        "success_criteria": ["it is there"],
    }
    assert contract["permissions"]["can_spawn_children"] is False
    assert contract["permissions"]["max_delegation_depth"] == 0
    assert contract["execution"]["close_on_completion"] is True
    assert contract["outputs"] == {
        "report_format": "markdown",
        "report_path_pattern": ".orchestrix/step-<idx>-result.md",
    }


def test_commits_carry_the_trailers(bench: Workbench) -> None:
    """Snapshot and merge name run, step and agent."""
    done = bench.run(write("x.txt", "x\n"))
    for revision in (done.data["head"], done.steps[0]["commit"]):
        message = bench.git("log", "-1", "--format=%B", revision)
        assert f"Orchestrix-Run: {done.data['run_id']}" in message
        assert "Orchestrix-Step: 0" in message
        assert "Orchestrix-Agent: actions" in message


def test_a_fixed_clock_gives_the_same_commit_ids(tmp_path, monkeypatch) -> None:
    """The same plan on the same commit in two clones: the same ids, also with other timing."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setenv("GIT_AUTHOR_DATE", "1700000000 +0000")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "1700000000 +0000")
    heads = []
    for name, pause in (("one", "0.2"), ("two", "0")):
        made = Workbench(tmp_path / name)
        made.commit({"a.txt": "a\n"})
        plan = made.plan(
            shell('sleep "$PAUSE"; echo 1 > one.txt', owns=["one.txt"]), write("two.txt", "2\n"), defaults={"env": {}}
        )
        monkeypatch.setenv("ORCHESTRIX_ENV_PASS", "PAUSE")
        monkeypatch.setenv("PAUSE", pause)
        done = made.call("run", str(plan), "--json")
        assert done.code == 0, done.err + done.out
        heads.append((done.data["run_id"], done.data["head"]))
    assert heads[0] == heads[1]


def test_dependants_start_from_what_they_need_and_nothing_else(bench: Workbench) -> None:
    """Start point = base + needs; an unrelated finished step is not in it."""
    done = bench.run(
        write("one.txt", "1\n"),
        write("two.txt", "2\n"),
        shell("ls > seen.txt", owns=["seen.txt"], needs=[0]),
    )
    assert done.code == 0
    seen = bench.tree(done.data["head"])["seen.txt"].split()
    assert "one.txt" in seen
    assert "two.txt" not in seen


def test_overlapping_steps_are_serialised(bench: Workbench) -> None:
    """Two steps that own the same file: the later one starts from the earlier one's result."""
    done = bench.run(
        shell("echo first >> a.txt", owns=["a.txt"]),
        shell("echo second >> a.txt", owns=["a.txt"]),
    )
    assert done.code == 0
    assert bench.tree(done.data["head"])["a.txt"].split() == ["one", "two", "three", "first", "second"]


def test_the_report_is_in_the_archive_and_in_the_checkout_and_git_status_stays_clean(bench: Workbench) -> None:
    """Every step has a report with a JSON twin; the run has run.md; nothing of it shows in git status."""
    done = bench.run(write("x.txt", "x\n"))
    folder = bench.files / ".orchestrix/local/runs" / done.data["run_id"]
    assert {path.name for path in folder.iterdir()} >= {"run.md", "step-0-result.md", "step-0-result.json"}
    assert (bench.files / ".orchestrix/step-0-result.md").read_text().startswith("---\n")
    assert bench.git("status", "--porcelain", "--untracked-files=all") == ""
    assert (bench.files / done.steps[0]["report"]).is_file()
