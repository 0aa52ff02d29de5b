"""The measurements as text: tables for people, and their place in a page of the documentation."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bench import growth, promises
from bench.matrix import Found
from bench.timing import Comparison
from bench.work import Case

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
_MEGABYTE = 1e6
_RUNS = (
    "work",
    "by",
    "seconds",
    "spread",
    "ratio",
    "ms a step",
    "beyond its command",
    "memory, all (MB)",
    "memory, first (MB)",
    "disk (MB)",
)
_SAID = {True: "reached", False: "**not reached**", None: "not measured"}


def text(found: Found) -> str:
    """All tables as Markdown."""
    parts = [
        f"Load of the machine before: {found.load:.1f} on {os.cpu_count()} cores.",
        runs(found.cases),
        stages(found),
        startup(found.startup),
        growths(found.cases),
        limits(found),
    ]
    return "\n\n".join(part for part in parts if part)


def runs(cases: Sequence[Case]) -> str:
    """One line for each contender and size; what was not measured is empty."""

    def lines() -> Iterator[tuple[str, ...]]:
        for case in cases:
            for name, spent in case.times.spent.items():
                spread, overhead, taken = case.times.spread(name), case.overhead(name), case.footprints[name]
                yield (
                    case.title,
                    name,
                    f"{spent.clock:.2f}",
                    "" if spread is None else f"+{spread:.0%}",
                    _ratio(case.times.ratio(name)),
                    f"{spent.clock * 1000 / case.steps:.1f}",
                    "" if overhead is None else f"{overhead * 1000:.1f}",
                    *("" if one is None else f"{one / _MEGABYTE:.0f}" for one in (taken.tree, taken.first, taken.disk)),
                )

    return _table(_RUNS, lines())


def stages(found: Found) -> str:
    def lines() -> Iterator[tuple[str, ...]]:
        for (files, name), times in found.stages.items():
            for who, spent in times.spent.items():
                yield f"{name}, {files:,} files", who, f"{spent.clock * 1000:.1f}", _ratio(times.ratio(who))

    return _table(("stage", "by", "ms", "ratio"), lines())


def startup(times: Comparison | None) -> str:
    if times is None:
        return ""
    lines = (
        (name, f"{spent.clock * 1000:.1f}", _ratio(times.ratio(name)), f"{times.limits.get(name, '')}")
        for name, spent in times.spent.items()
    )
    return _table(("start-up", "ms", "ratio", "at most"), lines)


def growths(cases: Sequence[Case]) -> str:
    """Cost is proportional to size to the power of the exponent: 0 is flat, 1 is in proportion."""
    lines = (
        (f"{one.cost} over {one.of}, {one.fixed}", one.contender, f"{one.exponent:.2f}")
        for one in growth.measured(cases)
    )
    return _table(("growth", "by", "exponent"), lines)


def limits(found: Found) -> str:
    def lines() -> Iterator[tuple[str, ...]]:
        for verdict in promises.verdicts(found):
            promise = verdict.promise
            shown = "" if verdict.measured is None else _amount(verdict.measured, promise.unit)
            yield promise.work, _amount(promise.at_most, promise.unit), shown, _SAID[verdict.kept]

    return _table(("promised", "at most", "measured", ""), lines())


def insert(path: Path, content: str) -> None:
    """Replaces what stands between the marks of a page; raises ValueError when it has none."""
    page = path.read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no {BEGIN} ... {END}")
    path.write_text(f"{before}{BEGIN}\n\n{content}\n\n{END}{after}", encoding="utf-8")


def _amount(value: float, unit: str) -> str:
    return f"{value:.3g} {unit}" if unit in ("ms", "MB", "times") else f"{_ratio(value)} {unit}"


def _ratio(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}x" if value >= 0.5 else f"1/{1 / value:.3g}" if value > 0.001 else f"1/{1 / value:,.0f}"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Nothing at all where there are no lines."""
    rows = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows]) if rows else ""
