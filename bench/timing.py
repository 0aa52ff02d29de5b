"""Interleaved timing: contenders take turns, and the best of the rounds counts.

A shared machine only ever adds time, so the minimum is the measurement; taking turns gives all the same weather.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LAST_WORDS = 2000
_PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds on the clock, and seconds of processor time of the program and all that it started."""

    clock: float
    cpu: float


Turn = Callable[[], Spent]
Watch = Callable[[int], contextlib.AbstractContextManager[object]]


def _unwatched(_pid: int) -> contextlib.AbstractContextManager[object]:
    return contextlib.nullcontext()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What each contender took in each round; where the yardstick is not among them there are no ratios."""

    rounds: Mapping[str, Sequence[Spent]]
    yardstick: str
    limits: Mapping[str, float]

    @property
    def spent(self) -> dict[str, Spent]:
        """The best of the rounds."""
        return {
            name: Spent(min(one.clock for one in spent), min(one.cpu for one in spent))
            for name, spent in self.rounds.items()
        }

    def ratio(self, name: str) -> float | None:
        best = self.spent
        return best[name].clock / best[self.yardstick].clock if self.yardstick in best else None

    def spread(self, name: str) -> float | None:
        """By how much of the best round the worst one was longer; None when there was but one."""
        clocks = [one.clock for one in self.rounds[name]]
        return max(clocks) / min(clocks) - 1 if len(clocks) > 1 else None

    @property
    def broken(self) -> list[str]:
        """Every limit that does not hold, as a sentence."""
        ratios = {name: self.ratio(name) for name in self.limits}
        return [
            f"{name} takes {ratio:.2f}x of {self.yardstick}; at most {self.limits[name]}x is promised"
            for name, ratio in ratios.items()
            if ratio is not None and ratio > self.limits[name]
        ]

    def as_dict(self) -> dict[str, Any]:
        return {
            name: {
                "seconds": round(best.clock, 4),
                "rounds": [round(one.clock, 4) for one in self.rounds[name]],
                "cpu_seconds": round(best.cpu, 4),
                "ratio": self.ratio(name),
                "limit": self.limits.get(name),
            }
            for name, best in self.spent.items()
        }


def compare(turns: Mapping[str, Turn], yardstick: str, limits: Mapping[str, float], rounds: int) -> Comparison:
    """Each contender in turn, for so many rounds; a contender times itself, so that its preparation is free."""
    found: dict[str, list[Spent]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, turn in turns.items():
            found[name].append(turn())
    return Comparison(found, yardstick, limits)


def spend(command: Sequence[str | Path], cwd: Path, env: Mapping[str, str], watch: Watch = _unwatched) -> Spent:
    """What a program takes from start to end; raises RuntimeError, with what it said, when it fails."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        began, before = time.perf_counter(), _cpu()
        process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
        )
        try:
            with watch(process.pid):
                process.wait()
                spent = Spent(time.perf_counter() - began, _cpu() - before)
        finally:
            _stop(process)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"{command[:3]}: exit {process.returncode}\n{said.read()[-_LAST_WORDS:]}")
    return spent


def _stop(process: subprocess.Popen[bytes]) -> None:
    """It still runs only when we were interrupted; it may tidy up first."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
