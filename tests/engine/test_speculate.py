"""Gates ahead of their turn: sooner, but with the commits, the order and the verdicts of one by one."""

from __future__ import annotations

import glob
import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from support import checker
from support.coordinators import KILLED, ended, run_plan, started
from support.workbench import Result, Workbench, shell, write

from harness.engine import speculate
from harness.engine.context import Context
from harness.model.ids import CommitId, TaskId

UNSAFE = ("--sandbox", "none")
AHEAD = ("--speculate", "3", "-j", "4")
SPECULATION = ("gate.speculated", "gate.speculation_held", "gate.speculation_discarded")


def part(idx: int, check: str = "true", **fields: Any) -> dict[str, Any]:
    """A step whose check does something on a merged tree only: step 0 is in every one of them."""
    on_merged = f"test {idx} = 0 || ! test -e part0.txt || {{ {check}; }}"
    return write(f"part{idx}.txt", f"{idx}\n", checks=[on_merged], **fields)


def until(path: Path) -> str:
    return f"while ! test -e {path}; do sleep 0.02; done"


def speculated(bench: Workbench) -> list[tuple[str, str]]:
    """What the log says of gates ahead: the event's last word and the step."""
    return [
        (event["type"].rsplit("_", 1)[-1].removeprefix("gate."), event["task_id"])
        for event in bench.events()
        if event["type"] in SPECULATION
    ]


def left_over() -> list[str]:
    """What is still there of workspaces that were made for a gate ahead; the place of an overlay may stay, empty."""
    runs = f"{os.environ['XDG_STATE_HOME']}/orchestrix/*/*"
    patterns = (f"{runs}/trees/*-ahead-*/*", f"{runs}/layers/*-ahead-*", f"{runs}/kept/*-ahead-*")
    return [path for pattern in patterns for path in glob.glob(pattern)]  # noqa: PTH207 - an absolute pattern


def test_a_gate_behind_a_slow_one_starts_before_that_one_has_ended(bench: Workbench) -> None:
    """Step 1's check waits for step 2's on the merged tree: one by one, this run would never end."""
    seen = bench.root / "seen"
    done = bench.run(part(0), part(1, until(seen)), part(2, f"touch {seen}"), flags=(*UNSAFE, *AHEAD))
    assert (done.code, done.reasons) == (0, ["merged", "merged", "merged"])
    assert speculated(bench) == [("speculated", "2"), ("held", "2")]
    guess = next(event["payload"] for event in bench.events() if event["type"] == "gate.speculated")
    merges = [step["merge_commit"] for step in done.steps]
    assert (guess["assumes"], guess["head"], guess["commit"]) == (["1"], merges[1], merges[2])
    assert left_over() == []


def test_what_stood_on_a_failed_gate_is_done_again_on_the_true_head(bench: Workbench) -> None:
    """Steps 2 and 3 are gated on a tree with step 1 in it; step 1 fails, and none of that counts."""
    seen = bench.root / "seen"
    fails = f"{until(seen / '2')}; {until(seen / '3')}; false"
    seen.mkdir()
    done = bench.run(
        part(0),
        part(1, fails),
        part(2, f"touch {seen / '2'}"),
        part(3, f"touch {seen / '3'}; test -e part2.txt"),
        flags=(*UNSAFE, *AHEAD),
    )
    assert (done.code, done.reasons) == (5, ["merged", "check_failed", "merged", "merged"])
    assert "part1.txt" not in bench.tree(done.data["head"])
    happened = speculated(bench)
    assert happened[:4] == [("speculated", "2"), ("speculated", "3"), ("discarded", "2"), ("discarded", "3")]
    assert happened[4:] in ([], [("speculated", "3"), ("held", "3")])
    discarded = [event["payload"]["why"] for event in bench.events() if event["type"] == "gate.speculation_discarded"]
    assert discarded == ["step 1 was not integrated on the assumed head"] * 2, "both are ended when step 1 is refused"
    checked = [
        event["payload"]["tree"]
        for event in bench.events()
        if event["type"] == "check.finished" and event["payload"]["where"] == "merged"
    ]
    assert checked == [bench.git("rev-parse", f"{commit}^{{tree}}") for commit in _candidates(bench, done)]
    assert left_over() == []


def test_what_was_found_on_another_tree_never_counts(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look ahead that forgets the step at the gate guesses wrong: the check is green there, and red where it counts."""
    look = speculate._look

    async def forgetful(ctx: Context, task: TaskId, _commit: CommitId) -> None:
        await look(ctx, task, CommitId(ctx.journal.state.head))

    monkeypatch.setattr(speculate, "_look", forgetful)
    seen = bench.root / "seen"
    steps = [part(0), part(1, until(seen)), part(2, f"touch {seen}; ! test -e part1.txt")]
    done = bench.run(*steps, flags=(*UNSAFE, *AHEAD))
    assert (done.code, done.reasons) == (5, ["merged", "merged", "check_failed"])
    assert speculated(bench) == [("speculated", "2"), ("discarded", "2")]


def _candidates(bench: Workbench, done: Result) -> list[str]:
    """The merges that were judged: the failed one is in no branch, so it is built again from its parts."""
    steps = done.steps
    kept = bench.git("rev-parse", steps[1]["kept_ref"])
    tree = bench.git("merge-tree", "--write-tree", steps[0]["merge_commit"], kept)
    failed = bench.git("commit-tree", tree, "-m", "candidate")
    return [failed, steps[2]["merge_commit"], steps[3]["merge_commit"]]


def _chance(seed: int) -> list[dict[str, Any]]:
    """Six steps with conflicts and red gates by chance, and gates that take differently long.

    All park: which step is stopped by the failure of another before that is a matter of time, with gates ahead or without.
    """
    dice = random.Random(seed)
    steps = []
    for idx in range(6):
        check = dice.choice(["true", "true", f"sleep 0.0{idx}", "false", "! test -e part2.txt"])
        script = f"echo {idx} > part{idx}.txt" + (f"; echo {idx} > shared.txt" if dice.random() < 0.3 else "")
        owns = [f"part{idx}.txt", "shared.txt"]
        steps.append(shell(script, title=f"part {idx}", owns=owns, checks=part(idx, check)["checks"]))
    return steps


def _outcome(root: Path, seed: int, *flags: str) -> tuple[dict[str, Any], int]:
    """Everything that a run decides, and how often it guessed."""
    shutil.rmtree(root, ignore_errors=True)
    bench = Workbench(root)
    bench.commit({"shared.txt": "base\n"}, "Start")
    done = bench.run(*_chance(seed), flags=(*UNSAFE, "-j", "4", *flags), overlap="allow")
    assert checker.check(bench.files) == []
    assert left_over() == []
    events = bench.events()
    decided = [
        (event["task_id"], event["type"], event["payload"].get("reason"), event["payload"].get("merge_commit"))
        for event in events
        if event["type"] in ("agent.worktree_merged", "agent.integration_failed")
    ]
    merged_checks = [
        (event["task_id"], event["payload"]["tree"], event["payload"]["ok"])
        for event in events
        if event["type"] == "check.finished" and event["payload"]["where"] == "merged"
    ]
    refs = bench.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/orchestrix/keep")
    outcome = {
        "code": done.code,
        "reasons": done.reasons,
        "messages": [step["message"] for step in done.steps],
        "decided": decided,
        "merged checks": merged_checks,
        "refs": refs,
    }
    return outcome, sum(event["type"] == "gate.speculated" for event in events)


def _compared(root: Path, seeds: range, monkeypatch: pytest.MonkeyPatch) -> int:
    for name in ("SOURCE_DATE_EPOCH", "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, "1700000000" if name.startswith("S") else "1700000000 +0000")
    guesses = 0
    for seed in seeds:
        plain, none = _outcome(root, seed)
        ahead, some = _outcome(root, seed, "--speculate", "3")
        assert none == 0
        assert ahead == plain, f"seed {seed}"
        guesses += some
    return guesses


def test_patterns_of_failure_end_the_same_with_and_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits, refs, verdicts, messages, merged trees that were checked and the order of it all: a few seeds."""
    assert _compared(tmp_path / "bench", range(3), monkeypatch) > 0


@pytest.mark.sweep
def test_many_patterns_of_failure_end_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for sixty seeds."""
    assert _compared(tmp_path / "bench", range(60), monkeypatch) > 60


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_a_stop_leaves_no_gate_and_the_resume_goes_on_ahead(bench: Workbench, sandbox: str) -> None:
    """A signal while two gates run: no workspace is left, the log says what was given up, and the option is kept."""
    gate = f"test -e {bench.root / 'gate'} || sleep 600"
    args = run_plan(bench, part(0), part(1, gate), part(2, gate), flags=("--sandbox", sandbox, *AHEAD))
    with started(bench, *args) as run:
        run.until_logged("attempt.process_started", purpose="check", count=5)
        run.send(signal.SIGTERM)
        assert run.end_soon().code == 143
    assert speculated(bench) == [("speculated", "2"), ("discarded", "2")]
    assert left_over() == []
    (bench.root / "gate").touch()
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons) == (0, ["merged", "merged", "merged"])
    assert speculated(bench)[2:] in ([], [("speculated", "2"), ("held", "2")])


def test_a_check_that_kills_its_coordinator_ahead_of_its_turn_harms_nobody_else(bench: Workbench) -> None:
    """The death is not counted against anybody ahead; from then on the step is gated in its turn, and counted there."""
    seen = bench.root / "seen"
    deadly = f"touch {seen}; kill -9 $(sed -n 's/^PPid:.//p' /proc/$PPID/status); sleep 60"
    first = f"test -e {seen} || sleep 60"
    args = run_plan(bench, part(0), part(1, first), part(2, deadly), part(3), flags=(*UNSAFE, *AHEAD))
    assert ended(bench, *args, env={"ORCHESTRIX_RECOVERIES": "1"}).code == KILLED
    assert ended(bench, "resume", "r1", "--json").code == KILLED
    assert ended(bench, "resume", "r1", "--json").code == KILLED
    done = ended(bench, "resume", "r1", "--json")
    assert (done.code, done.reasons) == (1, ["merged", "merged", "recoveries_exhausted", "merged"])
    assert "died 2 times" in done.steps[2]["message"]
    assert speculated(bench).count(("speculated", "2")) == 1


def test_tampering_by_a_check_that_came_to_nothing_is_still_its_steps_failure(bench: Workbench) -> None:
    """Step 2's check plants a hook when it is given up: neither the step before it nor the one after answers for that."""
    seen = bench.root / "seen"
    hook = bench.files / ".git/hooks/post-merge"
    plant = f"test -e {seen} || {{ trap 'echo evil > {hook}; exit' TERM; touch {seen}; sleep 60 & wait; }}"
    steps = [part(0), part(1, f"{until(seen)}; false"), part(2, plant), write("part3.txt", "3\n")]
    done = bench.run(*steps, flags=(*UNSAFE, *AHEAD))
    hook.unlink()
    assert (done.code, done.reasons) == (5, ["merged", "check_failed", "parent_tampered", "merged"])


@pytest.mark.bench
def test_slow_checks_take_the_time_of_one(tmp_path: Path) -> None:
    """Four gates of a second each, one by one and at once, in one comparison."""

    def seconds(name: str, *flags: str) -> float:
        bench = Workbench(tmp_path / name)
        bench.commit({"a.txt": "a\n"}, "Start")
        began = time.monotonic()
        done = bench.run(*(part(idx, "sleep 1") for idx in range(5)), flags=(*UNSAFE, "-j", "5", *flags))
        assert done.code == 0
        return time.monotonic() - began

    assert seconds("ahead", "--speculate", "4") < 0.75 * seconds("plain")


def test_no_more_gates_run_at_once_than_steps_may(bench: Workbench) -> None:
    """With -j 1 a guess waits for the gate before it: both hold the same lock, and neither finds it taken."""
    lock = bench.root / "lock"
    alone = f"mkdir {lock} && sleep 0.1 && rmdir {lock}"
    done = bench.run(*(part(idx, alone) for idx in range(4)), flags=(*UNSAFE, "--speculate", "3", "-j", "1"))
    assert (done.code, done.reasons) == (0, ["merged"] * 4)
