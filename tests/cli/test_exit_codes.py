"""Every documented exit code, as a process gives it to a shell."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from support.coordinators import ended, run_plan, started
from support.workbench import ROOT, Result, Workbench, shell, write

_HELD = shell("echo half > x.txt; exec sleep 600", owns=["x.txt"])
_BROKEN = "from harness.cli import output\ndef broken(*_): raise KeyError('bug')\noutput.line = broken\n"


def _a_run(*steps: dict[str, object], flags: tuple[str, ...] = (), **fields: object) -> Callable[[Workbench], Result]:
    return lambda bench: ended(bench, *run_plan(bench, *steps, flags=flags, **fields))


def _outside(bench: Workbench) -> Result:
    return ended(bench, "-C", str(bench.root), "list", "--json")


def _busy(bench: Workbench) -> Result:
    with started(bench, *run_plan(bench, _HELD)) as run:
        run.until_written("x.txt")
        return ended(bench, "resume", "r1", "--json")


def _bug(bench: Workbench) -> Result:
    (bench.root / "sitecustomize.py").write_text(_BROKEN)
    return ended(bench, "version", env={"PYTHONPATH": f"{bench.root}:{ROOT}"})


def _ended_by(number: signal.Signals) -> Callable[[Workbench], Result]:
    def act(bench: Workbench) -> Result:
        with started(bench, *run_plan(bench, _HELD)) as run:
            run.until_written("x.txt")
            run.send(number)
            return run.end()

    return act


_WAYS: list[tuple[int, str, Callable[[Workbench], Result]]] = [
    (0, "a merged step", _a_run(write("x.txt", "x\n"))),
    (1, "a failed step", _a_run(shell("false"))),
    (2, "a missing plan", lambda bench: ended(bench, "run", "missing.json", "--json")),
    (3, "no repository", _outside),
    (4, "a conflict", _a_run(*(write("a.txt", text) for text in ("b\n", "c\n")), flags=("-j", "2"), overlap="allow")),
    (5, "a failed check", _a_run(write("x.txt", "x\n", checks=["false"]))),
    (6, "a live run", _busy),
    (7, "an empty budget", _a_run(*(write(f"{n}.txt", n) for n in "xy"), flags=("--budget", "attempts=1", "-j", "1"))),
    (70, "a bug", _bug),
    (124, "a step out of time", _a_run(shell("exec sleep 600", timeout="200ms"))),
    (130, "SIGINT", _ended_by(signal.SIGINT)),
    (143, "SIGTERM", _ended_by(signal.SIGTERM)),
    (143, "SIGHUP", _ended_by(signal.SIGHUP)),
]


@pytest.mark.parametrize(("code", "way"), [pytest.param(code, way, id=f"{code}-{name}") for code, name, way in _WAYS])
def test_a_process_ends_with_the_documented_code(
    bench: Workbench, code: int, way: Callable[[Workbench], Result]
) -> None:
    """The code, and for a machine an envelope that agrees with it."""
    done = way(bench)
    assert done.code == code, (done.out, done.err)
    assert not done.out or done.envelope["ok"] is (code == 0)


def test_every_documented_code_is_tried_here() -> None:
    """The page and this table have the same codes."""
    page = Path(ROOT, "docs/reference/exit-codes.md").read_text().partition("## Error codes")[0]
    assert {int(code) for code in re.findall(r"^\| `(\d+)` \|", page, re.MULTILINE)} == {code for code, _, _ in _WAYS}
