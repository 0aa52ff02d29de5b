"""Limits as a run meets them: time, output, processes that outlive their program."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sandbox.survivors import kill_marked, marked
from support.workbench import Workbench, shell, write

from harness.model import contract, limits


@pytest.fixture
def word(tmp_path) -> Iterator[str]:
    made = f"left-{tmp_path.name}-{time.monotonic_ns()}"
    yield made
    kill_marked(made)


def limited(monkeypatch: pytest.MonkeyPatch, **values: int) -> None:
    """Contracts with other limits than the defaults."""
    monkeypatch.setattr(contract, "Limits", partial(contract.Limits, **values))


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_nothing_that_a_step_started_outlives_it_or_its_snapshot(bench: Workbench, word: str, sandbox: str) -> None:
    """Background, setsid and double-forked writers are dead before the files are taken: the last state is merged."""
    (bench.files / "writer.sh").write_text("n=0; while :; do n=$((n+1)); echo $n > busy.txt; done\n")
    bench.commit({})
    writer = f"sh writer.sh {word}"
    script = f"{writer} & setsid {writer} & (setsid sh -c '{writer} & exit' &); sleep 0.3; true"
    done = bench.run(shell(script, title="writers"), flags=("--sandbox", sandbox, "--keep"))
    assert (done.code, done.reasons) == (0, ["merged"]), done.out
    assert marked(word) == []
    path = next(event["payload"]["path"] for event in bench.events() if event["type"] == "workspace.preparing")
    assert bench.tree(done.data["head"])["busy.txt"] == Path(path, "busy.txt").read_text().strip()


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_a_step_that_ran_out_of_time_is_dead_before_its_files_are_taken(
    bench: Workbench, word: str, sandbox: str
) -> None:
    """It ignores TERM and writes on until it is killed: what is kept is the last that it wrote."""
    writer = "trap '' TERM; n=0; while :; do n=$((n+1)); echo $n > busy.txt; done"
    done = bench.run(
        {"title": "writer", "command": ["sh", "-c", writer, word], "timeout": "400ms"},
        flags=("--sandbox", sandbox, "--keep"),
    )
    assert (done.code, done.reasons, marked(word)) == (124, ["timeout"], [])
    path = next(event["payload"]["path"] for event in bench.events() if event["type"] == "workspace.preparing")
    assert bench.tree(done.steps[0]["kept_ref"])["busy.txt"] == Path(path, "busy.txt").read_text().strip()


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_an_output_that_is_held_open_does_not_hold_up_the_step(bench: Workbench, word: str, sandbox: str) -> None:
    """The step ends with its program: waiting for the child that has its stdout would only end with the time limit."""
    script = f"(setsid sh -c 'while :; do sleep 1; done' {word} &) ; echo 1 > x.txt"
    done = bench.run(shell(script, timeout="60s"), flags=("--sandbox", sandbox))
    assert (done.code, done.reasons, marked(word)) == (0, ["merged"], [])


def test_a_flood_of_output_is_cut_in_the_middle(bench: Workbench) -> None:
    """Head and tail stay, the cut is marked, the log stays small; the step is judged as usual."""
    script = "echo first-line; head -c 40000000 /dev/zero | tr '\\0' x; echo; echo last-line; echo 1 > x.txt"
    done = bench.run(shell(script, title="flood"))
    assert (done.code, done.reasons) == (0, ["merged"])
    log = bench.files / ".orchestrix/local/runs" / done.data["run_id"] / "logs/step-0-attempt-1.log"
    assert log.stat().st_size < limits.OUTPUT_HEAD_BYTES + limits.OUTPUT_TAIL_BYTES + 1000
    text = log.read_text()
    assert text.startswith("first-line\n")
    assert text.endswith("last-line\n")
    assert "bytes left out" in text


@pytest.mark.parametrize(("purpose", "reason"), [("check", "check_failed"), ("setup", "setup_failed")])
def test_checks_and_setup_have_time_limits_too(bench: Workbench, monkeypatch, purpose: str, reason: str) -> None:
    """One that hangs is ended at its own limit, and the step says which command it was."""
    limited(monkeypatch, **{f"{purpose}_timeout_ms": 400})
    fields = {"checks": ["sleep 300"]} if purpose == "check" else {"setup": ["sleep 300"]}
    done = bench.run(write("x.txt", "x\n", **fields))
    assert (done.reasons, "sleep 300" in done.steps[0]["message"]) == ([reason], True)


def test_more_changed_files_than_allowed_fail_the_step_with_its_work_kept(bench: Workbench, monkeypatch) -> None:
    """`limit_exceeded` names both numbers."""
    limited(monkeypatch, files=3)
    done = bench.run(shell("for n in 1 2 3 4; do echo $n > $n.txt; done"))
    assert done.reasons == ["limit_exceeded"]
    assert "4 files; 3 allowed" in done.steps[0]["message"]
    assert {"1.txt", "4.txt"} <= bench.tree(done.steps[0]["kept_ref"]).keys()
