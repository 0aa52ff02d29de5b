"""Trying again: by the contract within a run, and by `orchestrix retry` after it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from support.coordinators import KILLED, attempts, ended, kept, run_plan
from support.workbench import Workbench, shell, write

from harness.model import limits
from harness.model.state import StepState
from harness.model.verdict import Failure, Reason
from harness.orchestrator import error_policy


def of_type(bench: Workbench, kind: str) -> list[dict[str, Any]]:
    return [event["payload"] for event in bench.events() if event["type"] == kind]


def fragile(bench: Workbench, name: str = "x.txt", **fields: Any) -> dict:
    """A step that writes its prompt and fails until the file `repaired` is there."""
    script = f'cat "$ORCHESTRIX_PROMPT_FILE" > {name}; test -e {bench.root / "repaired"} || {{ echo not yet; exit 3; }}'
    return shell(script, title=f"fragile {name}", owns=[name], **fields)


def repair(bench: Workbench) -> None:
    (bench.root / "repaired").touch()


@pytest.mark.parametrize(
    ("failures", "base", "pause"), [(1, 1000, 1000), (2, 1000, 2000), (5, 1000, 16000), (3, 7, 28), (60, 1000, 300_000)]
)
def test_the_pause_doubles_with_every_failure_up_to_a_ceiling(failures: int, base: int, pause: int) -> None:
    """Base x 2^(fail_count - 1); a pause that the agent asked for goes before it, up to a ceiling of its own."""
    step = StepState("r/0", "0", 0, None, "t", {}, failed_attempts=failures)
    assert error_policy.pause_ms(Failure(Reason.AGENT_FAILED, ""), step, base) == pause
    assert error_policy.pause_ms(Failure(Reason.RATE_LIMITED, "", retry_after_ms=5), step, base) == 5
    assert error_policy.pause_ms(Failure(Reason.RATE_LIMITED, "", retry_after_ms=10**12), step, base) == (
        limits.RATE_LIMIT_CEILING_MS
    )


def test_the_pauses_are_really_made(bench: Workbench, monkeypatch) -> None:
    """The log's own times show at least the configured base, then twice and four times as much."""
    monkeypatch.setenv("ORCHESTRIX_BACKOFF_BASE", "60ms")
    done = bench.run(shell("exit 1", retries=3))
    assert (done.code, attempts(bench)) == (1, {"0": 4})
    times = {
        kind: [datetime.fromisoformat(event["ts"]) for event in bench.events() if event["type"] == kind]
        for kind in ("attempt.finished", "agent.subagent_attempt")
    }
    gaps = [
        (after - before).total_seconds()
        for before, after in zip(times["attempt.finished"], times["agent.subagent_attempt"][1:], strict=False)
    ]
    assert [gap >= least for gap, least in zip(gaps, (0.06, 0.12, 0.24), strict=True)] == [True] * 3


def test_a_rate_limit_uses_up_no_retry_but_a_failure_after_it_does(bench: Workbench, monkeypatch) -> None:
    """One retry: rate limited twice, failed once, then done."""
    monkeypatch.setenv("ORCHESTRIX_BACKOFF_BASE", "1ms")
    script = 'case "$ORCHESTRIX_ATTEMPT" in 1|3) exit 75;; 2) exit 1;; esac; echo 1 > x.txt'
    done = bench.run(shell(script, retries=1))
    assert (done.code, done.reasons, attempts(bench)) == (0, ["merged"], {"0": 4})


def test_an_attempt_leaves_nothing_to_the_next_one(bench: Workbench, monkeypatch) -> None:
    """Files, ignored files, the index, commits, a moved HEAD and a broken .git of the first are not seen by the second."""
    monkeypatch.setenv("ORCHESTRIX_BACKOFF_BASE", "1ms")
    bench.commit({".gitignore": "*.tmp\n"})
    dirty = (
        "echo 1 > new.txt; echo 1 > junk.tmp; rm a.txt; echo 2 > src/lib.py; git add -A; git commit -qm mine;"
        " git checkout -q --detach; echo garbage > .git; exit 1"
    )
    script = f'if [ "$ORCHESTRIX_ATTEMPT" = 1 ]; then {dirty}; fi; git status --porcelain --ignored > seen.txt; git log -1 --format=%s >> seen.txt; ls >> seen.txt'
    done = bench.run(shell(script, retries=1))
    assert (done.code, done.reasons) == (0, ["merged"])
    assert bench.tree(done.data["head"])["seen.txt"].split() == (
        ["??", "seen.txt", "Change", "README.md", "a.txt", "seen.txt", "src"]
    )
    assert [sorted(files) for files in kept(bench)] == [[".gitignore", "README.md", "new.txt", "src/lib.py"]]
    own = bench.git("for-each-ref", "--format=%(refname)", "refs/orchestrix/keep/*/0/agent-1-0")
    assert bench.git("log", "-1", "--format=%s", own) == "mine"


def test_retry_runs_the_failed_step_and_what_failed_because_of_it(bench: Workbench) -> None:
    """What was merged is not touched; the prompt says why it failed before; the earlier work keeps its own ref."""
    first = bench.run(
        write("fine.txt", "1\n"),
        fragile(bench),
        shell("cp x.txt y.txt", owns=["y.txt"], needs=[1]),
        shell("cp y.txt z.txt", owns=["z.txt"], needs=[2]),
        shell("exit 9", title="another failure", owns=["w.txt"]),
    )
    assert first.reasons == ["merged", "agent_failed", "dependency_failed", "dependency_failed", "agent_failed"]
    again = bench.call("retry", "latest", "1", "--json")
    assert (again.code, again.reasons) == (1, first.reasons)
    repair(bench)
    done = bench.call("retry", "latest", "1", "--json")
    assert (done.code, done.reasons) == (1, ["merged"] * 4 + ["agent_failed"])
    assert attempts(bench) == {"0": 1, "1": 3, "2": 1, "3": 1, "4": 1}
    assert [step["sub_agent_id"].partition("/")[2] for step in done.steps] == ["0", "1~3", "2~3", "3~3", "4"]
    assert done.steps[0] == first.steps[0]
    tree = bench.tree(done.data["head"])
    assert "not yet" in tree["x.txt"]
    assert (tree["y.txt"], tree["z.txt"]) == (tree["x.txt"], tree["x.txt"])
    refs = [fact["ref"] for fact in of_type(bench, "work.kept") if fact["task"] == "1"]
    assert len(set(refs)) == len(refs) == 2
    assert "not yet" not in bench.tree(refs[0])["x.txt"]
    assert "not yet" in bench.tree(refs[1])["x.txt"]
    assert of_type(bench, "run.finished")[-1]["merged"] == 4


def test_a_conflicting_step_is_done_again_on_what_it_conflicted_with(bench: Workbench) -> None:
    """From its old start point it could only conflict again; on the integration head it sees the other's line."""
    first = bench.run(
        shell("echo zero >> a.txt", owns=["a.txt"]),
        shell('cat "$ORCHESTRIX_PROMPT_FILE" > prompt.txt; echo one >> a.txt', owns=["a.txt", "prompt.txt"]),
        shell("sed s/one/ONE/ a.txt > b.txt", owns=["b.txt"], needs=[1]),
        overlap="allow",
    )
    assert (first.code, first.reasons) == (4, ["merged", "merge_conflict", "dependency_failed"])
    done = bench.call("retry", "latest", "1", "--json")
    assert (done.code, done.reasons) == (0, ["merged"] * 3)
    tree = bench.tree(done.data["head"])
    assert tree["a.txt"].split() == ["one", "two", "three", "zero", "one"]
    assert tree["b.txt"].split() == ["ONE", "two", "three", "zero", "ONE"]
    assert "a.txt" in tree["prompt.txt"].split("The attempt before this one failed")[1]
    assert [fact["origin"] for fact in of_type(bench, "agent.subagent_created")][3:] == [first.data["head"]] * 2
    assert done.steps[1]["start_point"] == first.data["head"]


def test_two_steps_that_were_red_together_are_mended_by_a_retry(bench: Workbench) -> None:
    """The check that failed on the merged tree runs on a workspace that holds that tree."""
    both = "! { test -e x.txt && test -e y.txt; } || test -e z.txt"
    first = bench.run(
        write("x.txt", "1\n"),
        shell("echo 1 > y.txt; ! test -e x.txt || echo 1 > z.txt", owns=["y.txt", "z.txt"], checks=[both]),
    )
    assert (first.code, first.reasons) == (5, ["merged", "check_failed"])
    done = bench.call("retry", "latest", "1", "--json")
    assert (done.code, done.reasons) == (0, ["merged", "merged"])
    assert {"x.txt", "y.txt", "z.txt"} <= bench.tree(done.data["head"]).keys()


def test_retry_takes_up_what_was_stopped(bench: Workbench) -> None:
    """With `on_failure: stop` the stopped steps failed because of the retried one; they are tried again with it."""
    first = bench.run(
        fragile(bench),
        write("y.txt", "y\n"),
        write("z.txt", "z\n", needs=[1]),
        on_failure="stop",
        flags=("-j", "1"),
    )
    assert (first.code, first.reasons) == (1, ["agent_failed", "stopped", "stopped"])
    repair(bench)
    done = bench.call("retry", "latest", "0", "--json")
    assert (done.code, done.reasons) == (0, ["merged"] * 3)


def test_only_a_failed_step_of_a_known_run_can_be_retried(bench: Workbench) -> None:
    """Exit 2 and no event for a merged step, an unknown one, an unknown run; a slug names a step, too."""
    bench.run(write("fine.txt", "1\n", id="fine"), fragile(bench, id="fragile"))
    events = bench.events()
    for run, step in (("latest", "fine"), ("latest", "7"), ("nope", "1")):
        assert bench.call("retry", run, step).code == 2
    assert bench.events() == events
    repair(bench)
    assert bench.call("retry", "latest", "fragile").code == 0


@pytest.mark.parametrize("place", ["before:run.started", "after:agent.subagent_attempt", "before:integration_ref"])
def test_a_retry_that_dies_is_carried_on_by_resume(bench: Workbench, place: str) -> None:
    """Also when it died before its coordinator had taken the run: the new sub-agents are in the log."""
    assert ended(bench, *run_plan(bench, write("fine.txt", "1\n"), fragile(bench))).code == 1
    repair(bench)
    assert ended(bench, "retry", "r1", "1", "--json", env={"ORCHESTRIX_FAILPOINT": place}).code == KILLED
    assert bench.call("retry", "r1", "1").code == 2
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons) == (0, ["merged", "merged"])
