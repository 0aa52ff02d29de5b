"""Which sizes are measured: a few minutes' worth by default, those of the promises or all of them on request."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bench.contenders import AGAIN, BARE, EVERYONE, OVERLAY, PLAIN

_MIDDLE, _LARGE = 50_000, 400_000  # files times steps: from here on the plain script takes ten seconds, a minute
_WEIGHED = 60_000
_FILE_BYTES = 12_000  # what a generated file takes on a disk


@dataclass(frozen=True, slots=True)
class Size:
    """A plan of so many steps on a repository of so many files, and who takes part."""

    files: int
    steps: int
    who: tuple[str, ...] = EVERYONE

    @property
    def rounds(self) -> int:
        return 3 if self._weight < _MIDDLE else 2 if self._weight < _LARGE else 1

    @property
    def weighed(self) -> bool:
        """Whether there is time for one more run, in which disk and memory are looked at closely."""
        return self._weight <= _WEIGHED

    @property
    def _weight(self) -> int:
        return self.files * self.steps

    def room(self, rounds: int) -> int:
        """How many files there can be: a repository and a checkout of each contender, and once a worktree of each step."""
        return self.files * (2 * len(self.who) * (rounds + self.weighed) + self.steps)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Whole runs, for how many files single stages are measured, and whether the start-up of commands is."""

    runs: tuple[Size, ...]
    stages: tuple[int, ...]
    startup: bool = True


QUICK = Sizes((*(Size(200, steps) for steps in (1, 8, 32)), Size(500, 8), Size(7_000, 8)), (7_000,))
# The plain script would take five minutes for 1,000 steps, and checkouts of 60,000 files as long, with no promise about them.
PROMISED = Sizes(
    (
        Size(200, 8),
        Size(200, 100),
        Size(500, 8),
        Size(7_000, 8),
        Size(200, 1_000, (OVERLAY, BARE)),
        Size(7_000, 32),
        Size(60_000, 8, (PLAIN, OVERLAY, AGAIN)),
    ),
    (7_000, 60_000),
)
FULL = Sizes(
    (
        *(Size(200, steps) for steps in (1, 8, 32, 100, 128, 1_000)),
        *(Size(files, steps) for files in (500, 7_000, 60_000) for steps in (1, 8, 32, 128)),
    ),
    (7_000, 60_000),
)


def stage_rounds(files: int) -> int:
    return 3 if files < _MIDDLE else 2


def stage_room(files: int, rounds: int) -> int:
    """The repository three times, and two worktrees a round."""
    return files * (3 + 2 * rounds)


def lacking(folder: Path, files: int) -> str | None:
    """What a disk lacks for so many files."""
    disk = os.statvfs(folder)
    if disk.f_favail < files:
        return f"{files:,} files have no room on the disk"
    if disk.f_bavail * disk.f_frsize < files * _FILE_BYTES:
        return f"{files * _FILE_BYTES / 1e9:.0f} GB have no room on the disk"
    return None
