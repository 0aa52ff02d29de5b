"""Interleaved timing: contenders take turns, and the best of the rounds counts.

A shared machine only ever adds time, so the minimum is the measurement; taking turns gives all the same weather.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds on the clock, and seconds of processor time of the program and all that it started."""

    clock: float
    cpu: float

    def best(self, other: Spent) -> Spent:
        return Spent(min(self.clock, other.clock), min(self.cpu, other.cpu))


Contender = Callable[[], Spent]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Best times; the first contender is what the others are measured against."""

    spent: dict[str, Spent]
    limits: Mapping[str, float]

    @property
    def yardstick(self) -> str:
        return next(iter(self.spent))

    def ratio(self, name: str) -> float:
        return self.spent[name].clock / self.spent[self.yardstick].clock

    @property
    def broken(self) -> list[str]:
        """Every limit that does not hold, as a sentence."""
        return [
            f"{name} takes {self.ratio(name):.2f}x of {self.yardstick}; at most {limit}x is promised"
            for name, limit in self.limits.items()
            if self.ratio(name) > limit
        ]

    def as_dict(self) -> dict[str, Any]:
        return {
            name: {
                "seconds": round(best.clock, 4),
                "cpu_seconds": round(best.cpu, 4),
                "ratio": round(self.ratio(name), 4),
                "limit": self.limits.get(name),
            }
            for name, best in self.spent.items()
        }


def compare(contenders: Mapping[str, Contender], limits: Mapping[str, float], rounds: int) -> Comparison:
    """Each contender in turn, for so many rounds; a contender times itself, so that its preparation is free."""
    best: dict[str, Spent] = {}
    for _ in range(rounds):
        for name, contender in contenders.items():
            spent = contender()
            best[name] = spent.best(best.get(name, spent))
    return Comparison(best, limits)


def spend(command: Sequence[str | Path], cwd: Path, env: Mapping[str, str]) -> Spent:
    """What a program takes from start to end; raises RuntimeError, with what it said, when it fails."""
    began, before = time.perf_counter(), _cpu()
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    spent = Spent(time.perf_counter() - began, _cpu() - before)
    if done.returncode:
        raise RuntimeError(f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return spent


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
