"""Checkouts that a run is done with, for its next steps: only what differs from what those need is written again.

Nothing of the step before is left. A file stays only when nobody touched it since it was written, a directory only when
it is as the system makes them, and whatever the index does not know goes.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from harness.model import limits
from harness.model.ids import TreeId
from harness.model.late import dataclass
from harness.vcs import index_stats, places, removal
from harness.vcs.places import Place
from harness.vcs.private import PrivateDir
from harness.vcs.special_paths import SpecialPaths

_CHOSEN_FLAGS = 0x400100FF  # linux/fs.h: those that a user may choose and that matter
_ROOT_MODE = 0o700
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Spare:
    """A checkout of `tree` that a step has worked in, and the index that it was made with."""

    tree: TreeId
    files: Path
    index: Path


class CheckoutPool:
    """The checkouts of one repository's runs, as one process uses them.

    `allowed` only where nothing that a step started outlives it: a stranger would work on in the next step's files.
    """

    def __init__(self, special_paths: SpecialPaths) -> None:
        self.allowed = False
        self._special_paths = special_paths
        self._in_use: dict[Path, TreeId] = {}
        self._spare: dict[Path, list[_Spare]] = {}
        self._lock = threading.Lock()

    def check_out(self, place: Place, private: PrivateDir, tree: TreeId) -> None:
        """Fills a workspace with the files of a tree, from a spare where there is one."""
        spare = self._taken(place, tree)
        if spare is not None:
            _move_in(spare, place)
        private.git(place.tree, place.index).run("read-tree", "--reset", "-u", tree)
        if self.allowed and not self._special_paths.of(tree).gitlinks:
            self._in_use[place.tree] = tree

    def keep(self, place: Place) -> bool:
        """Takes the files of a workspace that is no more; whether it did."""
        tree = self._in_use.pop(place.tree, None)
        if tree is None:
            return False
        with self._lock, suppress(OSError):
            spares = self._of_run(place)
            if len(spares) < limits.SPARE_CHECKOUTS:
                spares.append(_put_by(place, tree))
                return True
        return False

    def drop(self, run_dir: Path) -> list[Path]:
        """There are no more spares of a run; what they were is the caller's to remove."""
        with self._lock:
            return [path for spare in self._spare.pop(run_dir, ()) for path in (spare.files, spare.index)]

    def _of_run(self, place: Place) -> list[_Spare]:
        """What an earlier coordinator put by goes when this one begins to."""
        if place.run_dir not in self._spare:
            removal.put(_folder(place), trash=place.trash)
            _folder(place).mkdir()
            self._spare[place.run_dir] = []
        return self._spare[place.run_dir]

    def _taken(self, place: Place, tree: TreeId) -> _Spare | None:
        """The last one whose files were written by the same attributes: these say how content becomes a file."""
        with self._lock:
            spares = self._spare.get(place.run_dir, [])
            wanted = self._special_paths.of(tree)
            for spare in reversed(spares):
                if not wanted.gitlinks and self._special_paths.of(spare.tree).attributes == wanted.attributes:
                    spares.remove(spare)
                    return spare
        return None


def _folder(place: Place) -> Path:
    """A directory as the system makes them, beside which those of a spare are held."""
    return place.run_dir / "spare"


def _put_by(place: Place, tree: TreeId) -> _Spare:
    spare = _Spare(tree, _folder(place) / place.name, _folder(place) / f"{place.name}.index")
    place.tree.rename(spare.files)
    place.index.rename(spare.index)
    return spare


def _move_in(spare: _Spare, place: Place) -> None:
    """Brings what is left of the checkout into the workspace, with its index; whatever is missing, git writes."""
    try:
        strays = list(_strays(os.fsencode(spare.files), spare.index))
    except (ValueError, OSError):
        removal.put(spare.files, spare.index, trash=place.trash)
        return
    removal.put(*map(Path, map(os.fsdecode, strays)), trash=place.trash)
    # All that is left was compared just now: git need not read what was written in the second of the index.
    second = spare.index.stat().st_mtime_ns // _SECOND + 1
    os.utime(spare.index, ns=(second * _SECOND, second * _SECOND))
    spare.files.rename(place.tree)
    spare.index.rename(place.index)


def _strays(root: bytes, index: Path) -> Iterable[bytes]:
    """Everything that is not as it was checked out; raises ValueError when the root itself is not, or the index."""
    known = index_stats.by(index)
    folders = index_stats.folders(known)
    plain = _nature(os.path.dirname(root))  # noqa: PTH120 - bytes, as everywhere here
    if _nature(root) != (_ROOT_MODE | plain[0] & stat.S_ISGID, *plain[1:]):
        raise ValueError("somebody changed the directory itself")
    waiting = [b""]
    while waiting:
        above = waiting.pop()
        with os.scandir(root + b"/" + above) as entries:
            for entry in entries:
                path = above + entry.name
                sign = known.get(path)
                if sign is not None and index_stats.is_untouched(entry, sign[0]):
                    continue
                if path in folders and entry.is_dir(follow_symlinks=False) and _nature(entry.path) == plain:
                    waiting.append(path + b"/")
                else:
                    yield entry.path


def _nature(directory: bytes) -> tuple[int, int, int, tuple[str, ...], int]:
    """Whatever a directory hands on to, or allows of, the files in it; one that is closed to us has none."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:
        return 0, 0, 0, (), 0
    try:
        found = os.fstat(handle)
        return stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, _attributes(handle), _flags(handle)
    finally:
        os.close(handle)


def _attributes(handle: int) -> tuple[str, ...]:
    with suppress(OSError):
        return tuple(sorted(os.listxattr(handle)))
    return ()


def _flags(handle: int) -> int:
    with suppress(OSError):
        return places.flags(handle) & _CHOSEN_FLAGS
    return 0
