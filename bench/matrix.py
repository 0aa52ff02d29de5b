"""Everything that was asked for, one size after the other: what is known after each of them stays known."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench import contenders, samples, sizes, stages, startup
from bench.ground import Ground
from bench.places import Place, Task, title
from bench.samples import Sample
from bench.sizes import Size, Sizes
from bench.timing import Comparison
from bench.work import Case, Runs

_STARTUP_ROUNDS, _STARTUP_FILES = 6, 500


@dataclass(slots=True)
class Found:
    """Whole runs by size, and single stages by the number of files and the git command that they replace."""

    cases: list[Case] = field(default_factory=list)
    stages: dict[tuple[int, str], Comparison] = field(default_factory=dict)
    startup: Comparison | None = None
    load: float = field(default_factory=lambda: os.getloadavg()[0])  # before our own


@dataclass(frozen=True, slots=True)
class Part:
    """One of the things to measure, and how many files there will be at most."""

    title: str
    room: int
    measure: Callable[[Found], None]


class Matrix:
    """`names` are the contenders that are asked for; `rounds` instead of as many as a size deserves; a real `tree`."""

    def __init__(
        self,
        ground: Ground,
        tell: Callable[[str], None],
        names: tuple[str, ...] = contenders.EVERYONE,
        rounds: int | None = None,
        tree: Path | None = None,
    ) -> None:
        self._ground = ground
        self._tell = tell
        self._names = names
        self._rounds = rounds
        self._tree = tree
        self._samples: dict[int, Sample] = {}

    def of_tree(self, steps: list[int]) -> Sizes:
        """So many steps each on the real tree."""
        files = self._sample(0).files
        return Sizes(tuple(Size(files, number) for number in steps), (files,), startup=False)

    def measure(self, wanted: Sizes, found: Found) -> None:
        """Into `found`, the quick things first; what has no room is left out."""
        parts = list(self._parts(wanted))
        tight = sizes.lacking(self._ground.root, sum(part.room for part in parts))
        if tight:
            self._tell(f"{tight} until the end: removal between sizes, which makes ext4 slow for a minute")
        for part in parts:
            if lacking := sizes.lacking(self._ground.root, part.room):
                self._tell(f"{part.title}: left out, {lacking}")
                continue
            self._tell(part.title)
            part.measure(found)
            if tight:
                self._samples.clear()
                self._ground.clear()

    def _parts(self, wanted: Sizes) -> Iterator[Part]:
        if wanted.startup:
            yield Part("start-up", 2 * _STARTUP_FILES, self._startup)
        for files in wanted.stages:
            rounds = self._rounds or sizes.stage_rounds(files)
            yield Part(
                f"stages on {files:,} files", sizes.stage_room(files, rounds), partial(self._stages, files, rounds)
            )
        for size in wanted.runs:
            rounds = self._rounds or size.rounds
            yield Part(title(size.steps, size.files), size.room(rounds), partial(self._runs, size, rounds))

    def _startup(self, found: Found) -> None:
        task = Task(samples.generated(self._ground.folder(), _STARTUP_FILES), 1)
        place = Place.made(task, self._ground.folder())
        found.startup = startup.measure(place, self._rounds or _STARTUP_ROUNDS)

    def _stages(self, files: int, rounds: int, found: Found) -> None:
        for name, times in stages.measure(self._sample(files), self._ground, rounds).items():
            found.stages[files, name] = times
            for who, spent in times.spent.items():
                self._tell(f"{name}, {files:,} files, {who}: {spent.clock * 1000:.1f} ms")

    def _runs(self, size: Size, rounds: int, found: Found) -> None:
        sample = self._sample(size.files)
        why_not = contenders.why_no_overlays(sample, self._ground.folder())
        if why_not:
            self._tell(f"no overlays: {why_not}")
        names = [name for name in size.who if name in self._names]
        runs = Runs(Task(sample, size.steps), self._ground, self._tell)
        found.cases.append(runs.measure(contenders.chosen(names, why_not), rounds, size.weighed))

    def _sample(self, files: int) -> Sample:
        key = 0 if self._tree else files
        if key not in self._samples:
            folder = self._ground.folder()
            made = samples.unpacked(folder, self._tree) if self._tree else samples.generated(folder, files)
            self._samples[key] = made
        return self._samples[key]
