"""A whole run against a plain git script that does the same work, start-up included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench import contenders, footprint
from bench.contenders import Job
from bench.footprint import Footprint
from bench.places import Place
from bench.timing import Comparison, Contender, Spent, compare, spend


@dataclass(frozen=True, slots=True)
class Case:
    """One size of repository and of plan, and what every contender took for it."""

    files: int
    steps: int
    times: Comparison
    footprints: dict[str, Footprint]

    @property
    def title(self) -> str:
        return f"{self.steps:,} step{'s' if self.steps > 1 else ''} on {self.files:,} files"


def measure(place: Place, rounds: int, kinds: Sequence[str] = contenders.KINDS) -> Case:
    """Raises RuntimeError when the contenders do not end in the same tree."""
    trees: dict[str, str] = {}
    found = contenders.jobs(place, kinds)

    def contender(job: Job) -> Contender:
        def run() -> Spent:
            repo, command = job.prepared()
            spent = spend(command, repo, job.env)
            trees[job.name] = job.outcome()
            return spent

        return run

    times = compare({job.name: contender(job) for job in found}, {}, rounds)
    if len(set(trees.values())) != 1:
        raise RuntimeError(f"the contenders did not do the same work: {trees}")
    return Case(place.files, place.steps, times, {job.name: _footprint(job) for job in found})


def _footprint(job: Job) -> Footprint:
    repo, command = job.prepared()
    return footprint.of(command, repo, job.env, job.place.root)
