"""kill -9 of the coordinator before and after every append and every effect: resume ends in the same tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import checker
from support.workbench import ROOT, Workbench, shell, write

_KILLED = -9
_QUICK = 14  # every 14th place in CI; `pytest -m sweep` takes them all


def _steps() -> list[dict]:
    """One plain, one that conflicts with it, one that fails, one that is retried, one that needs two, and a race."""
    return [
        shell("echo zero > a.txt", title="zero", owns=["a.txt"], checks=["test -s a.txt"]),
        shell("echo one > a.txt", title="conflicts", owns=["a.txt"]),
        shell("echo lost > lost.txt; exit 3", title="fails", owns=["lost.txt"]),
        shell(
            'echo "$ORCHESTRIX_ATTEMPT" > half.txt; [ "$ORCHESTRIX_ATTEMPT" != 1 ] && echo done > half.txt',
            title="retried",
            owns=["half.txt"],
            retries=1,
        ),
        write("last.txt", "last\n", needs=[0, 3], checks=["test -s half.txt", "grep -q zero a.txt"]),
        shell(
            'seq "$ORCHESTRIX_CANDIDATE" > race.txt',
            title="raced",
            owns=["race.txt"],
            candidates=3,
            checks=["grep -q 2 race.txt"],
        ),
    ]


def _gated_steps() -> list[dict]:
    """Five steps with a gate each, of which the third is red on the merged tree: what stands on it is gated twice."""
    return [
        write(f"{idx}.txt", f"{idx}\n", title=f"gated {idx}", checks=["! test -e 0.txt" if idx == 2 else "true"])
        for idx in range(5)
    ]


@dataclass(frozen=True)
class _Subject:
    """A plan, how it is run, and what it must end with."""

    steps: tuple[dict, ...]
    exit_code: int
    flags: tuple[str, ...] = ()


_PLAIN = _Subject(tuple(_steps()), 4)
_AHEAD = _Subject(tuple(_gated_steps()), 5, ("--speculate", "3", "-j", "4"))


def _made(folder: Path, subject: _Subject) -> Workbench:
    bench = Workbench(folder)
    bench.commit({"a.txt": "start\n", "keep.txt": "keep\n"}, "Start")
    bench.plan(*subject.steps, overlap="allow")
    return bench


def _run(bench: Workbench, *args: str, **env: str) -> int:
    home = bench.root / "home"
    done = subprocess.run(
        [sys.executable, "-m", "harness", *args, "--json"],
        cwd=bench.files,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "ORCHESTRIX_BACKOFF_BASE": "1ms",
            "SOURCE_DATE_EPOCH": "1700000000",
            **env,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


def _places(folder: Path, subject: _Subject) -> tuple[str, list[str]]:
    """The tree of an undisturbed run, and everything that it passed by."""
    bench = _made(folder, subject)
    trace = folder / "trace"
    code = _run(bench, "run", str(bench.root / "plan.json"), *subject.flags, ORCHESTRIX_FAILPOINT_TRACE=str(trace))
    assert code == subject.exit_code
    assert checker.check(bench.files) == []
    return _result(bench), trace.read_text().split("\n")[:-1]


def _result(bench: Workbench) -> str:
    run = bench.git("for-each-ref", "--format=%(refname)", "refs/orchestrix/runs/").rsplit("/", 1)[-1]
    return bench.git("rev-parse", f"refs/heads/orchestrix/{run}/integration^{{tree}}")


def _killed_at(place: str, folder: Path, subject: _Subject, wanted: str, resume_at: str | None = None) -> str:
    """Runs into the kill, resumes (into a second kill where one is named), and compares; a sentence when it is wrong."""
    bench = _made(folder, subject)
    begin = ("run", str(bench.root / "plan.json"), *subject.flags)
    code = _run(bench, *begin, ORCHESTRIX_FAILPOINT=place)
    if code == _KILLED and resume_at:
        code = _run(bench, "resume", ORCHESTRIX_FAILPOINT=resume_at)
    for _ in range(3):
        if code != _KILLED:
            break
        if not bench.git("for-each-ref", "refs/heads/orchestrix") and not _logged(bench):
            code = _run(bench, *begin)
        else:
            code = _run(bench, "resume")
    problems = [*checker.check(bench.files), *([] if code == subject.exit_code else [f"exit {code}"])]
    if not problems and _result(bench) != wanted:
        problems.append("another tree")
    shutil.rmtree(folder)
    return f"{place}: {problems}" if problems else ""


def _logged(bench: Workbench) -> bool:
    database = bench.files / ".orchestrix/local/state.db"
    if not database.exists():
        return False
    return '"runs": []' not in bench.call("list", "--json").out


def _sweep(tmp_path: Path, subject: _Subject, step: int) -> list[str]:
    wanted, places = _places(tmp_path / "reference", subject)
    assert len(places) > 100, "the failpoints are gone"
    chosen = places[::step] if step > 1 else places
    problems = [_killed_at(place, tmp_path / str(number), subject, wanted) for number, place in enumerate(chosen)]
    return [problem for problem in problems if problem]


def test_a_sample_of_kills_ends_in_the_same_tree(tmp_path: Path) -> None:
    """The quick subset: every 14th boundary of the run."""
    assert _sweep(tmp_path, _PLAIN, _QUICK) == []


def test_a_sample_of_kills_with_gates_ahead_ends_in_the_same_tree(tmp_path: Path) -> None:
    """Every boundary of a guess of its own: announced, begun, held, given up."""
    wanted, places = _places(tmp_path / "reference", _AHEAD)
    chosen = [place for place in places if place.removeprefix("before:").removeprefix("after:").startswith("gate.")]
    assert {place.split("#")[0].rsplit(":", 1)[-1] for place in chosen} >= {"gate.speculated", "gate.speculation_held"}
    problems = [_killed_at(place, tmp_path / str(n), _AHEAD, wanted) for n, place in enumerate(chosen[::3])]
    assert [problem for problem in problems if problem] == []


@pytest.mark.sweep
@pytest.mark.parametrize("subject", [_PLAIN, _AHEAD], ids=["plain", "ahead"])
def test_every_kill_ends_in_the_same_tree(tmp_path: Path, subject: _Subject) -> None:
    """Before and after every append and every effect: 0 divergent trees, 0 lost or doubled events."""
    assert _sweep(tmp_path, subject, 1) == []


@pytest.mark.sweep
def test_kills_of_the_run_and_of_its_resume_end_in_the_same_tree(tmp_path: Path) -> None:
    """The coordinator dies, and the next one dies too."""
    wanted, places = _places(tmp_path / "reference", _PLAIN)
    pairs = [(places[n], places[(n * 7) % len(places)].split("#")[0]) for n in range(0, len(places), 5)]
    problems = [_killed_at(first, tmp_path / str(n), _PLAIN, wanted, second) for n, (first, second) in enumerate(pairs)]
    assert [problem for problem in problems if problem] == []
