"""Deleting a directory tree that a stranger filled: never out of it, never stopped by modes or depth."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from harness.errors import EnvironmentProblem
from harness.vcs.places import make_private


def discard(*paths: Path, trash: Path) -> None:
    """Removes what is at `paths`; it disappears from there at once, by a rename, and is then taken apart in `trash`.

    `trash` is on the same file system and belongs to the harness; what an interrupted call left there goes too.
    Raises EnvironmentProblem when something cannot be removed.
    """
    make_private(trash)
    pile = Path(tempfile.mkdtemp(prefix="pile-", dir=trash))
    try:
        for number, path in enumerate(filter(os.path.lexists, paths)):
            _open_up(path)
            path.rename(pile / str(number))
        _empty(pile)
    except OSError as error:
        raise EnvironmentProblem(
            f"{', '.join(map(str, paths))} cannot be removed: {error.strerror or error}",
            hint=f"look at {trash} and remove it by hand",
        ) from error


def sweep(trash: Path) -> None:
    """Finishes removals that were interrupted."""
    for pile in sorted(trash.glob("pile-*")) if trash.is_dir() else ():
        discard(pile, trash=trash)


def _empty(pile: Path) -> None:
    """Flattens as it goes: every directory is moved up into the pile, so depth and path length do not matter."""
    waiting = [Path(entry.path) for entry in os.scandir(pile)]
    count = len(waiting)
    while waiting:
        current = waiting.pop()
        if not stat.S_ISDIR(current.lstat().st_mode):
            current.unlink()
            continue
        with os.scandir(current) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    inner = Path(entry.path)
                    _open_up(inner)
                    waiting.append(pile / str(count))
                    inner.rename(waiting[-1])
                    count += 1
                else:
                    os.unlink(entry.path)  # noqa: PTH108 - one system call for each of many files
        current.rmdir()
    pile.rmdir()


def _open_up(path: Path) -> None:
    """A directory can be moved and emptied only when its owner may write it."""
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
        path.chmod(stat.S_IRWXU)


def remove_if_empty(directory: Path) -> None:
    """Leaves it when it is missing or holds anything."""
    try:
        directory.rmdir()
    except OSError:
        return  # missing, or somebody else's entries are in it
