"""What is promised, as data, and whether a measurement keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from bench import contenders, stages
from bench.matrix import Found

OVERLAY = contenders.ours("overlay")
CHECKOUT = contenders.ours("checkout")
_MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Promise:
    """`measure` names a value of `values`; it must be at most so much, in `unit`."""

    work: str
    measure: str
    at_most: float
    unit: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A promise and what was measured; None where this measurement does not say."""

    promise: Promise
    measured: float | None

    @property
    def kept(self) -> bool | None:
        return None if self.measured is None else self.measured <= self.promise.at_most


_GIT = {name: f"of `{name}`" for name in (stages.ADD, stages.COMMIT, stages.MERGE)}
_SCRIPT = "of the plain git script"
PROMISES = (
    Promise("workspace, 7,000 files", f"{stages.ADD}, 7000 files", 1 / 20, _GIT[stages.ADD]),
    Promise("workspace, 60,000 files", f"{stages.ADD}, 60000 files", 1 / 100, _GIT[stages.ADD]),
    Promise("snapshot of 5 changed files, 7,000 files", f"{stages.COMMIT}, 7000 files", 1 / 10, _GIT[stages.COMMIT]),
    Promise("snapshot of 5 changed files, 60,000 files", f"{stages.COMMIT}, 60000 files", 1 / 10, _GIT[stages.COMMIT]),
    Promise("merge, 7,000 files", f"{stages.MERGE}, 7000 files", 1 / 15, _GIT[stages.MERGE]),
    Promise("whole run, 8 steps, 500 files", f"{OVERLAY}, 8 steps, 500 files", 1.0, _SCRIPT),
    Promise("whole run, 8 steps, 7,000 files", f"{OVERLAY}, 8 steps, 7000 files", 1 / 12, _SCRIPT),
    Promise("whole run, 32 steps, 7,000 files", f"{OVERLAY}, 32 steps, 7000 files", 1 / 30, _SCRIPT),
    Promise("whole run, `checkout`, 32 steps, 7,000 files", f"{CHECKOUT}, 32 steps, 7000 files", 1 / 2, _SCRIPT),
    Promise("a step of 1,000, 200 files", f"{OVERLAY}, ms a step, 1000 steps, 200 files", 15, "ms"),
    Promise("1,000 steps against 100, 200 files", f"{OVERLAY}, 1000 steps to 100, 200 files", 11, "times"),
    Promise("memory of the coordinator, 1,000 steps", f"{OVERLAY}, first MB, 1000 steps, 200 files", 120, "MB"),
    Promise("memory of the coordinator, 60,000 files against 200", f"{OVERLAY}, first MB, 60000 to 200", 1.1, "times"),
)


def verdicts(found: Found) -> list[Verdict]:
    known = values(found)
    return [Verdict(promise, known.get(promise.measure)) for promise in PROMISES]


def values(found: Found) -> dict[str, float]:
    """Everything that a promise can be about, by name: ratios to the yardstick, milliseconds a step, megabytes."""
    result = {
        f"{name}, {files} files": times.ratio(OVERLAY)
        for (files, name), times in found.stages.items()
        if OVERLAY in times.spent
    }
    seconds: dict[tuple[str, int, int], float] = {}
    first: dict[tuple[str, int, int], float] = {}
    for case in found.cases:
        for name, spent in case.times.spent.items():
            size = f"{case.steps} steps, {case.files} files"
            seconds[name, case.steps, case.files] = spent.clock
            first[name, case.steps, case.files] = case.footprints[name].first / _MEGABYTE
            result[f"{name}, {size}"] = case.times.ratio(name)
            result[f"{name}, ms a step, {size}"] = spent.clock * 1000 / case.steps
            result[f"{name}, first MB, {size}"] = first[name, case.steps, case.files]
    for name in (OVERLAY, CHECKOUT):
        if {(name, 1000, 200), (name, 100, 200)} <= seconds.keys():
            result[f"{name}, 1000 steps to 100, 200 files"] = seconds[name, 1000, 200] / seconds[name, 100, 200]
        if {(name, 8, 60000), (name, 8, 200)} <= first.keys():
            result[f"{name}, first MB, 60000 to 200"] = first[name, 8, 60000] / first[name, 8, 200]
    return result
