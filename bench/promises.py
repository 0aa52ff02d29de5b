"""What is promised, as data, and whether a measurement keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from bench import stages
from bench.contenders import CHECKOUT, OVERLAY
from bench.matrix import Found

_MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Promise:
    """`measure` names a value of `values`; it, or it divided by `against`, must be at most so much, in `unit`."""

    work: str
    measure: str
    at_most: float
    unit: str
    against: str | None = None


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
# Those about overlays are judged on the first run, which has to make the shared checkout.
PROMISES = (
    Promise("workspace, 7,000 files", f"{stages.ADD}, 7000 files", 1 / 20, _GIT[stages.ADD]),
    Promise("workspace, 60,000 files", f"{stages.ADD}, 60000 files", 1 / 100, _GIT[stages.ADD]),
    Promise("snapshot of 5 changed files, 7,000 files", f"{stages.COMMIT}, 7000 files", 1 / 10, _GIT[stages.COMMIT]),
    Promise("snapshot of 5 changed files, 60,000 files", f"{stages.COMMIT}, 60000 files", 1 / 10, _GIT[stages.COMMIT]),
    Promise("merge, 7,000 files", f"{stages.MERGE}, 7000 files", 1 / 15, _GIT[stages.MERGE]),
    Promise("whole run, 8 steps, 500 files", f"{OVERLAY}, ratio, 8 steps, 500 files", 1.0, _SCRIPT),
    Promise("whole run, 8 steps, 7,000 files", f"{OVERLAY}, ratio, 8 steps, 7000 files", 1 / 12, _SCRIPT),
    Promise("whole run, 32 steps, 7,000 files", f"{OVERLAY}, ratio, 32 steps, 7000 files", 1 / 30, _SCRIPT),
    Promise("whole run, `checkout`, 32 steps, 7,000 files", f"{CHECKOUT}, ratio, 32 steps, 7000 files", 1 / 2, _SCRIPT),
    Promise(
        "a step of 1,000 beyond its command, 200 files", f"{OVERLAY}, overhead ms, 1000 steps, 200 files", 15, "ms"
    ),
    Promise(
        "1,000 steps against 100, 200 files",
        f"{OVERLAY}, seconds, 1000 steps, 200 files",
        11,
        "times",
        against=f"{OVERLAY}, seconds, 100 steps, 200 files",
    ),
    Promise("memory of the coordinator, 1,000 steps", f"{OVERLAY}, first MB, 1000 steps, 200 files", 120, "MB"),
    Promise(
        "memory of the coordinator, 60,000 files against 200",
        f"{OVERLAY}, first MB, 8 steps, 60000 files",
        1.1,
        "times",
        against=f"{OVERLAY}, first MB, 8 steps, 200 files",
    ),
)


def verdicts(found: Found) -> list[Verdict]:
    known = values(found)
    return [Verdict(promise, _measured(promise, known)) for promise in PROMISES]


def _measured(promise: Promise, known: dict[str, float]) -> float | None:
    if not {promise.measure, promise.against or promise.measure} <= known.keys():
        return None
    return known[promise.measure] / (known[promise.against] if promise.against else 1)


def values(found: Found) -> dict[str, float]:
    """Everything that a promise can be about, by name; what was not measured is not there."""
    known: dict[str, float | None] = {
        f"{name}, {files} files": times.ratio(OVERLAY)
        for (files, name), times in found.stages.items()
        if OVERLAY in times.spent
    }
    for case in found.cases:
        size = f"{case.steps} steps, {case.files} files"
        for name, spent in case.times.spent.items():
            overhead = case.overhead(name)
            known[f"{name}, ratio, {size}"] = case.times.ratio(name)
            known[f"{name}, seconds, {size}"] = spent.clock
            known[f"{name}, overhead ms, {size}"] = None if overhead is None else overhead * 1000
            known[f"{name}, first MB, {size}"] = case.footprints[name].first / _MEGABYTE
    return {name: value for name, value in known.items() if value is not None}
