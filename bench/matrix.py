"""Which sizes are measured: a few minutes' worth by default, those of the promises or all of them on request."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench import stages, startup, work
from bench.places import Place
from bench.timing import Comparison
from bench.work import Case
from fixtures import repos

_FILE_BYTES = 4096
_LARGE = 50_000  # files times steps: from here on one round takes the plain script half a minute and more


@dataclass(frozen=True, slots=True)
class Sizes:
    """So many steps on repositories of so many files, and where single stages are measured."""

    steps: dict[int, tuple[int, ...]]
    stages: tuple[int, ...]


QUICK = Sizes({200: (1, 8, 32), 500: (8,), 7_000: (8,)}, (7_000,))
PROMISED = Sizes({200: (8, 100, 1_000), 500: (8,), 7_000: (8, 32), 60_000: (8,)}, (7_000, 60_000))
FULL = Sizes(
    {
        200: (1, 8, 32, 100, 128, 1_000),
        500: (1, 8, 32, 128),
        7_000: (1, 8, 32, 128),
        60_000: (1, 8, 32, 128),
    },
    (7_000, 60_000),
)


@dataclass(frozen=True, slots=True)
class Found:
    """Whole runs by size, and single stages by the number of files and the git command that they replace."""

    cases: list[Case]
    stages: dict[tuple[int, str], Comparison]
    startup: Comparison | None = None


def measure(sizes: Sizes, rounds: int, kinds: Sequence[str], folder: str | None, tell: Callable[[str], None]) -> Found:
    """Each size in a folder of its own, which is gone before the next one begins."""
    cases: list[Case] = []
    single: dict[tuple[int, str], Comparison] = {}
    for files, steps in ((files, steps) for files, several in sizes.steps.items() for steps in several):
        lacking = _lacking(folder, files * steps)
        tell(f"{steps} steps on {files} files" + (f": left out, {lacking}" if lacking else ""))
        if lacking:
            continue
        with _place(folder, files, steps) as place:
            cases.append(work.measure(place, rounds if files * steps < _LARGE else 1, kinds))
    for files in sizes.stages:
        with _place(folder, files, 1) as place:
            tell(f"stages on {files} files")
            single |= {(files, name): times for name, times in stages.measure(place, rounds).items()}
    return Found(cases, single)


def measure_startup(found: Found, rounds: int, folder: str | None) -> Found:
    """These measurements and what the quick commands cost."""
    with _place(folder, 500, 1) as place:
        return replace(found, startup=startup.measure(place, rounds))


def _lacking(folder: str | None, copies: int) -> str | None:
    """What a disk lacks for a worktree of each step at the same time, as the plain script has them."""
    disk = os.statvfs(folder or tempfile.gettempdir())
    if disk.f_favail < 2 * copies:
        return f"{2 * copies:,} files have no room on the disk"
    if disk.f_bavail * disk.f_frsize < 2 * copies * _FILE_BYTES:
        return f"{2 * copies * _FILE_BYTES / 1e9:.0f} GB have no room on the disk"
    return None


@contextmanager
def _place(folder: str | None, files: int, steps: int) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(dir=folder) as root:
        yield Place(Path(root), files, steps)


def measure_tree(tree: Path, steps: int, rounds: int, kinds: Sequence[str], folder: str | None) -> Found:
    """The files of a folder or an archive instead of generated ones."""
    with tempfile.TemporaryDirectory(dir=folder) as root:
        bare = Place(Path(root), 0, steps, tree)
        count = repos.git(bare.template, "ls-files", "-z").count("\0")
        return Found([work.measure(Place(bare.root, count, steps, tree), rounds, kinds)], {})
