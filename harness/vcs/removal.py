"""Deleting directory trees that a stranger filled: never out of them, never stopped by modes or depth.

What goes is first renamed into a trash, a directory of the harness on the same file system: from then on it is nothing
any more, whatever happens. Taking a trash apart can wait, and anybody can do it, also two at once.
What resists (an immutable file, or one of another user) stays, and never fails the work that is done: `stuck` names it.
Paths are strings here: there are very many of them.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, count, repeat
from pathlib import Path

from harness.errors import EnvironmentProblem
from harness.vcs.places import make_private

_THREADS = 4
_FEW = 8  # directories, for which no thread is started
# Rights and flags of single files; every other error is the machine's.
_RESISTS = frozenset({errno.EPERM, errno.EACCES, errno.EBUSY, errno.ENOTEMPTY})
_NAMED = 10
_numbers = count()
_taking_apart = threading.Lock()


def discard(*paths: Path, trash: Path) -> None:
    """Removes what is at `paths`, and what else is in `trash`; raises EnvironmentProblem when the disk fails."""
    put(*paths, trash=trash)
    empty(trash)


def put(*paths: Path, trash: Path, elsewhere: Path | None = None) -> None:
    """What is at `paths` disappears from there at once, unless it resists; raises EnvironmentProblem when the disk fails.

    From another file system nothing can be renamed into `trash`; it is removed through the trash `elsewhere`.
    """
    for path in map(os.fspath, paths):
        try:
            _move(path, os.fspath(trash))
        except OSError as error:
            if error.errno == errno.EXDEV and elsewhere is not None:
                discard(Path(path), trash=elsewhere)
                continue
            if error.errno in _RESISTS:
                continue
            raise EnvironmentProblem(
                f"{path} cannot be removed: {error.strerror or error}", hint=f"look at {trash} and remove it by hand"
            ) from error


def empty(trash: Path) -> None:
    """Takes apart what is in the trash, and the trash itself unless more comes into it meanwhile."""
    try:
        with _taking_apart:
            _take_apart(os.fspath(trash))
    except OSError as error:
        raise EnvironmentProblem(
            f"{trash} cannot be removed: {error.strerror or error}", hint=f"look at {trash} and remove it by hand"
        ) from error


def stuck(trash: Path) -> list[Path]:
    """Files, and directories without any, that are still in it; a few of them, where there are many."""
    found: list[Path] = []
    for folder, folders, files in os.walk(trash):
        if files or not folders:
            found += [Path(folder, name) for name in sorted(files)] or [Path(folder)]
        if len(found) >= _NAMED:
            break
    return found[:_NAMED]


def command(path: Path) -> str:
    """What a person with the rights types to remove what resists here."""
    right = "" if os.geteuid() == 0 else "sudo "
    return f"{right}chattr -R -i {shlex.quote(str(path))}; {right}rm -rf {shlex.quote(str(path))}"


@contextmanager
def _bearing() -> Iterator[None]:
    """What another process took away is no matter; what resists stays."""
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno not in _RESISTS:
            raise


def remove_if_empty(directory: Path | str) -> bool:
    """Leaves it when it is missing or holds anything; whether it is gone."""
    try:
        os.rmdir(directory)  # noqa: PTH106 - a string where it is called often
    except OSError as error:
        return error.errno == errno.ENOENT
    return True


def _take_apart(trash: str) -> None:
    """Flattens as it goes: every directory is moved up into the trash, so depth and path length do not matter.

    Some file systems wait for the disk whenever they free a block, so that many directories go side by side.
    """
    waiting = _emptied(trash, trash)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="removal") as pool:
        while waiting:
            gone = (
                pool.map(_gone, waiting, repeat(trash)) if len(waiting) > _FEW else map(_gone, waiting, repeat(trash))
            )
            waiting = list(chain.from_iterable(gone))
    remove_if_empty(trash)


def _gone(directory: str, trash: str) -> list[str]:
    moved = _emptied(directory, trash)
    with _bearing():
        os.rmdir(directory)  # noqa: PTH106 - a string, as everywhere here
    return moved


def _emptied(directory: str, trash: str) -> list[str]:
    """The directories that were in it, and are in the trash now."""
    moved = []
    with _bearing(), os.scandir(directory) as entries:
        for entry in entries:
            with _bearing():
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)  # noqa: PTH108 - one system call for each of many files
                elif directory == trash:
                    _open_up(entry.path, entry.stat(follow_symlinks=False).st_mode)
                    moved.append(entry.path)
                elif target := _move(entry.path, trash):
                    moved.append(target)
    return moved


def _move(path: str, trash: str) -> str:
    """Where it is now; a directory there is open to its owner. Empty when there was nothing."""
    try:
        _open_up(path, os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    while True:
        target = f"{trash}/{os.getpid()}-{next(_numbers)}"
        try:
            os.rename(path, target)  # noqa: PTH104 - as above
        except FileNotFoundError:
            if not os.path.lexists(path):
                return ""
            make_private(trash)
        except OSError:
            if not os.path.lexists(target):
                raise
            # Something of an earlier process with this number: the next name is free.
        else:
            return target


def _open_up(path: str, mode: int) -> None:
    """A directory can be moved and emptied only when its owner may write it."""
    if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(path, stat.S_IRWXU)  # noqa: PTH101 - as above
