"""How cost grows with size: the exponent of a power law through the measurements."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.contenders import BARE
from bench.work import Case


@dataclass(frozen=True, slots=True)
class Growth:
    """A contender's cost is proportional to `of` to the power of `exponent` while `fixed` stays as it is."""

    contender: str
    cost: str
    of: str
    fixed: str
    exponent: float


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the line of least squares through the logarithms; at least two different sizes are needed."""
    logs = [(math.log(size), math.log(cost)) for size, cost in points]
    middle = [sum(values) / len(logs) for values in zip(*logs, strict=True)]
    spread = math.fsum((size - middle[0]) ** 2 for size, _ in logs)
    return math.fsum((size - middle[0]) * (cost - middle[1]) for size, cost in logs) / spread


def measured(cases: Sequence[Case]) -> Iterator[Growth]:
    """Time and memory over steps on one repository, and over files for one number of steps; only where sizes differ.

    Steps that nobody merges are no work of which it would be worth knowing.
    """
    lines: defaultdict[tuple[str, str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for case in cases:
        for name, spent in case.times.spent.items():
            if name == BARE:
                continue
            for cost, value in (("time", spent.clock), ("memory", float(case.footprints[name].tree))):
                lines[name, cost, "steps", f"{case.files:,} files"].append((case.steps, value))
                lines[name, cost, "files", f"{case.steps:,} steps"].append((case.files, value))
    for (name, cost, of, fixed), points in lines.items():
        if len({size for size, _ in points}) > 1:
            yield Growth(name, cost, of, fixed, exponent(points))
