"""Several candidates for one step: the best by checks, then by size of its diff, is taken; nothing of the others is lost."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

import pytest
from support.checker import check
from support.counting import CountingAgent
from support.workbench import Result, Workbench, shell, write

from harness.agents import registry
from harness.engine.context import Context
from harness.model.ids import TaskId

# Candidate 1 fails its check, 2 passes with more lines than 3, 4 exits with an error.
MIXED = """
case "$ORCHESTRIX_CANDIDATE" in
  1) echo bad > x.txt ;;
  2) printf 'good\\nlong\\n' > x.txt ;;
  3) echo good > x.txt ;;
  4) echo half > x.txt; exit 3 ;;
esac
"""


def _race(script: str, candidates: int = 4, **fields: object) -> dict:
    return shell(script, title="race", owns=["x.txt"], candidates=candidates, **fields)


def _facts(bench: Workbench, kind: str) -> list[dict]:
    return [event["payload"] for event in bench.events() if event["type"] == kind]


def _kept(bench: Workbench, done: Result) -> dict[str, str]:
    """What is kept of the run, by the end of the ref's name."""
    refs = bench.git("for-each-ref", "--format=%(refname)", f"refs/orchestrix/keep/{done.data['run_id']}").split()
    return {ref.rpartition("/")[2]: bench.git("show", f"{ref}:x.txt") for ref in refs}


def test_the_smallest_that_passes_is_taken_and_the_others_are_kept(bench: Workbench) -> None:
    """Verdicts, sizes and the choice are facts; the child's own sequence is that of any other step."""
    done = bench.run(_race(MIXED, checks=["grep -q good x.txt"]), flags=("-j", "3"))
    assert done.reasons == ["merged"]
    assert bench.tree(done.data["head"])["x.txt"] == "good"
    judged = sorted(
        (fact["candidate"], fact["reason"], fact["lines"], fact["failed_checks"])
        for fact in _facts(bench, "candidate.judged")
    )
    assert judged == [(1, "check_failed", 1, 1), (2, None, 2, 0), (3, None, 1, 0), (4, "agent_failed", 1, 0)]
    (chosen,) = _facts(bench, "candidate.chosen")
    assert (chosen["candidate"], chosen["judged"], chosen["not_started"]) == (3, 4, 0)
    report = bench.call("report", "--step", "0", "--json").data["report"]
    assert [(row["where"], row["ok"]) for row in report["checks"]] == [("workspace", True)]
    assert [row["candidate"] for row in report["candidates"] if row["taken"]] == [3]
    assert _kept(bench, done) == {"attempt-1.1": "bad", "attempt-1.2": "good\nlong", "attempt-1.4": "half"}
    assert [kind for kind in bench.types("0") if kind.startswith("agent.")] == [
        "agent.subagent_created",
        "agent.subagent_started",
        "agent.subagent_attempt",
        "agent.subagent_waiting_for_merge",
        "agent.worktree_merged",
        "agent.subagent_closed",
    ]
    assert bench.git("for-each-ref", "refs/heads/orchestrix", "--format=%(refname)").count("\n") == 0
    assert bench.git("worktree", "list").count("\n") == 0


def test_the_choice_does_not_depend_on_who_ends_first(bench: Workbench) -> None:
    """Equal results: the first in the plan's order is taken, however slow it was."""
    script = '[ "$ORCHESTRIX_CANDIDATE" = 1 ] && sleep 0.5; echo "$ORCHESTRIX_CANDIDATE" > x.txt'
    done = bench.run(_race(script, 3), flags=("-j", "3"))
    assert bench.tree(done.data["head"])["x.txt"] == "1"


def test_the_best_failure_is_the_failure_of_the_attempt_and_retries_apply(bench: Workbench, monkeypatch) -> None:
    """Who came as far as the checks and failed fewest of them is what the step answers for."""
    monkeypatch.setenv("ORCHESTRIX_BACKOFF_BASE", "1ms")
    script = """
    case "$ORCHESTRIX_ATTEMPT.$ORCHESTRIX_CANDIDATE" in
      1.1) exit 3 ;;
      1.2) echo none > x.txt ;;
      1.3) echo one > x.txt ;;
      2.*) echo one two > x.txt ;;
    esac
    """
    checks = ["grep -q one x.txt", "grep -q two x.txt"]
    done = bench.run(_race(script, 3, checks=checks, retries=1))
    assert done.reasons == ["merged"]
    first, second = _facts(bench, "attempt.finished")
    assert (first["reason"], second["ok"]) == ("check_failed", True)
    assert "grep -q two" in first["message"]
    assert "grep -q one" not in first["message"]
    alone = bench.run(_race("echo no > x.txt", 2, checks=["false"]))
    assert alone.reasons == ["check_failed"]
    assert alone.steps[0]["kept_ref"].endswith("/attempt-1.1")
    assert sorted(_kept(bench, alone)) == ["attempt-1.1", "attempt-1.2"]


def test_a_list_of_agents_races_them(bench: Workbench) -> None:
    """Each under its own name, with the same prompt; the report says who did what."""
    (bench.files / ".orchestrix").mkdir()
    (bench.files / ".orchestrix/config.toml").write_text(
        '[agents.long]\ncommand = ["sh", "-c", "printf \'a\\\\nb\\\\n\' > x.txt"]\n'
        '[agents.short]\ncommand = ["sh", "-c", "echo a > x.txt"]\n'
    )
    done = bench.run({"title": "race", "owns": ["x.txt"], "candidates": ["long", "short"]})
    assert done.reasons == ["merged"]
    assert bench.tree(done.data["head"])["x.txt"] == "a"
    assert [fact["agent"] for fact in _facts(bench, "candidate.chosen")] == ["short"]
    assert "Orchestrix-Agent: long, short" in bench.git("log", "-1", "--format=%B", done.data["head"])
    report = bench.call("report", "--step", "0").out
    assert "## Candidates" in report
    assert re.search(r"- 1\.1 long: ready, 2 lines; kept at `refs/orchestrix/keep/.*/attempt-1\.1`", report)
    assert "- 1.2 **short: ready, 1 line; taken**" in report


def test_candidates_run_within_the_jobs(bench: Workbench, tmp_path: Path) -> None:
    """With one job they go one after the other; with more, side by side, and never more than jobs in the whole run."""
    log = tmp_path / "log"
    script = f'echo in >> {log}; sleep 0.2; echo "$ORCHESTRIX_CANDIDATE" > FILE; echo out >> {log}'
    steps = [
        shell(script.replace("FILE", name), title=name, owns=[name], candidates=3) for name in ("one.txt", "two.txt")
    ]
    for jobs in (1, 2):
        log.write_text("")
        assert bench.run(*steps, flags=("-j", str(jobs), "--sandbox", "none")).reasons == ["merged", "merged"]
        running = most = 0
        for word in log.read_text().split():
            running += 1 if word == "in" else -1
            most = max(most, running)
        assert most == jobs


def test_a_budget_stops_starting_more(bench: Workbench, monkeypatch) -> None:
    """Two candidates cost what the step may cost: the third and fourth do not start; what was used is added up."""
    monkeypatch.setitem(registry._BUILT_IN, "command", CountingAgent)
    done = bench.run(_race('echo "$ORCHESTRIX_CANDIDATE" > x.txt', budget=0.2), flags=("-j", "1"))
    assert done.reasons == ["merged"]
    assert len(_facts(bench, "candidate.started")) == 2
    assert [fact["not_started"] for fact in _facts(bench, "candidate.chosen")] == [2]
    (end,) = _facts(bench, "attempt.finished")
    assert (end["usage"]["cost_usd"], end["usage"]["model"]) == (0.2, "m-1")


@pytest.mark.parametrize(
    "place",
    [
        "after:candidate.started#2",
        "after:candidate.judged#2",
        "before:workspace_removal",
        "before:choice",
        "before:attempt.finished",
        "before:branch_removal",
    ],
)
def test_a_killed_race_keeps_its_work_and_starts_the_attempt_anew(bench: Workbench, place: str) -> None:
    """kill -9 at the boundaries of a race: the same tree, nothing lost, nothing left."""
    script = """
    case "$ORCHESTRIX_CANDIDATE" in
      1) printf 'long\\nof attempt %s\\n' "$ORCHESTRIX_ATTEMPT" > x.txt ;;
      2) echo short > x.txt ;;
    esac
    """
    plan = bench.plan(_race(script, 2))
    killed = bench.process("run", str(plan), "-j", "2", env={"ORCHESTRIX_FAILPOINT": place})
    killed.communicate(timeout=120)
    assert killed.returncode == -9
    assert check(bench.files) == []
    done = bench.call("resume", "--json")
    assert done.reasons == ["merged"]
    assert bench.tree(done.data["head"])["x.txt"] == "short"
    assert bench.git("for-each-ref", "refs/heads/orchestrix", "--format=%(refname)").count("\n") == 0


def test_cancel_ends_every_candidate_and_keeps_its_work(bench: Workbench, tmp_path: Path) -> None:
    """^C in the middle: no process is left, each candidate's files are under its own ref, and the run resumes."""
    gate = tmp_path / "gate"
    wrote = [tmp_path / f"wrote{number}" for number in (1, 2)]
    work = f'echo "$ORCHESTRIX_CANDIDATE" > x.txt; touch {tmp_path}/wrote$ORCHESTRIX_CANDIDATE'
    plan = bench.plan(_race(f"{work}; while ! test -e {gate}; do sleep 0.05; done", 2))
    running = bench.process("run", str(plan), "-j", "2", "--sandbox", "none", "--jsonl")
    deadline = time.monotonic() + 60
    while not all(path.exists() for path in wrote):
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    running.terminate()
    running.communicate(timeout=60)
    assert running.returncode == 143
    data = bench.call("status", "--json").data
    kept = bench.git("for-each-ref", "--format=%(refname)", f"refs/orchestrix/keep/{data['run_id']}").split()
    assert [ref.rpartition("/")[2] for ref in kept] == ["attempt-1.1", "attempt-1.2"]
    gate.touch()
    assert bench.call("resume", "--json").reasons == ["merged"]


def test_a_step_that_is_stopped_leaves_no_branch_of_its_candidates(bench: Workbench) -> None:
    """`on_failure: stop` ends a race like any attempt."""
    waits = "while :; do sleep 0.05; done"
    done = bench.run(shell("sleep 0.5; exit 1", owns=["a.txt"]), _race(waits, 2), on_failure="stop", flags=("-j", "3"))
    assert done.reasons == ["agent_failed", "stopped"]
    refs = bench.git("for-each-ref", "refs/heads/orchestrix", "--format=%(refname)").split()
    assert [ref for ref in refs if "/1" in ref.removeprefix("refs/heads/orchestrix/")] == []


def test_a_candidate_that_tampers_with_the_parent_fails_the_race(bench: Workbench) -> None:
    """Nobody can say which of them it was: no result of that attempt is taken, and all of it is kept."""
    hook = bench.files / ".git/hooks/post-merge"
    script = f"""
    echo "$ORCHESTRIX_CANDIDATE" > x.txt
    if [ "$ORCHESTRIX_CANDIDATE" = 2 ]; then echo 'true' > {hook}; fi
    """
    done = bench.run(_race(script, 2), flags=("-j", "1", "--sandbox", "none"))
    assert done.reasons == ["parent_tampered"]
    assert [fact["candidate"] for fact in _facts(bench, "candidate.chosen")] == [1]
    assert _kept(bench, done) == {"attempt-1.1": "1", "attempt-1.2": "2"}


def test_a_race_is_recorded_by_its_winner_and_replayed_without_racing(bench: Workbench, tmp_path: Path) -> None:
    """The recording holds what was taken; a replay has nothing to choose from."""
    step = _race(MIXED, checks=["grep -q good x.txt"])
    ran = bench.run(step, write("y.txt", "y\n"))
    file = tmp_path / "race.zip"
    bench.call("record", "-o", str(file))
    again = bench.call("run", str(bench.root / "plan.json"), "--replay", str(file), "--json")
    assert again.reasons == ["merged", "merged"]
    heads = [bench.git("rev-parse", f"{done.data['head']}^{{tree}}") for done in (ran, again)]
    assert heads[0] == heads[1]
    assert _facts(bench, "candidate.started") == []


def test_keep_leaves_every_workspace_and_clean_removes_the_branches(bench: Workbench) -> None:
    """--keep is for looking at all of them; afterwards nothing is lost."""
    done = bench.run(_race('echo "$ORCHESTRIX_CANDIDATE" > x.txt', 2), flags=("--keep",))
    assert done.reasons == ["merged"]
    cleaned = bench.call("clean", "--json")
    assert [row["why"] for row in cleaned.data["removed"]].count("workspace of a run that has ended") == 2
    assert bench.git("for-each-ref", "refs/heads/orchestrix", "--format=%(refname)").count("\n") == 0
    assert _kept(bench, done) == {"attempt-1.2": "2"}


def test_a_task_is_in_flight_until_the_last_of_its_candidates_is_not() -> None:
    """What happens to the parent meanwhile is answered for."""
    ctx = Context.__new__(Context)
    ctx.in_flight = Counter()
    with ctx.flying(TaskId("1")):
        with ctx.flying(TaskId("1")), ctx.flying(TaskId("0")):
            assert ctx.flying_now == ["0", "1"]
        assert ctx.flying_now == ["1"]
    assert ctx.flying_now == []


@pytest.mark.sweep
def test_every_kill_of_a_race_ends_in_the_same_tree(tmp_path: Path) -> None:
    """Before and after every append and every effect of a raced step: the same tree, nothing lost, nothing left."""
    script = """
    case "$ORCHESTRIX_CANDIDATE" in
      1) echo "bad $ORCHESTRIX_ATTEMPT" > x.txt ;;
      2) echo good > x.txt ;;
      3) printf 'good\\n%s\\n' "$ORCHESTRIX_ATTEMPT" > x.txt ;;
    esac
    """
    step = _race(script, 3, checks=["grep -q good x.txt"])
    trace = tmp_path / "trace"
    _swept(tmp_path / "whole", step, ORCHESTRIX_FAILPOINT_TRACE=str(trace))
    places = trace.read_text().split()
    assert len(places) > 50
    for number, place in enumerate(places):
        _swept(tmp_path / str(number), step, ORCHESTRIX_FAILPOINT=place)


def _swept(folder: Path, step: dict, **env: str) -> None:
    made = Workbench(folder)
    made.commit({"a.txt": "a\n"})
    running = made.process("run", str(made.plan(step)), "-j", "1", env=env)
    running.communicate(timeout=120)
    if running.returncode == -9:
        begun = bool(made.call("list", "--json").out.count("run_id"))
        done = made.call(*(["resume"] if begun else ["run", str(made.root / "plan.json")]), "--json")
        assert done.code == 0, (env, done.out)
    assert check(made.files) == [], env
    head = made.call("status", "--json").data["head"]
    assert made.tree(head)["x.txt"] == "good", env
