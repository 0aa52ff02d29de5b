"""Files that nobody touched keep the content of the start point, also where git would store it otherwise.

A repository may hold content that its own attributes would convert (CRLF where `text` is set, an expanded `$Id$`), and
a step may change the attributes. Git takes such a file for changed whenever it reads it again, and it reads again what is
as young as its index. So files are compared with what was checked out before git sees them.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from harness import namespace
from harness.errors import MACHINE_FAULTS
from harness.model.ids import TreeId
from harness.vcs import index_stats, rules, survey
from harness.vcs.git import Git, check_time
from harness.vcs.objects import Objects
from harness.vcs.places import Place
from harness.vcs.private import PrivateDir
from harness.vcs.special_paths import SpecialPaths

_BYTES = 32 * 1024 * 1024


class Candidate(NamedTuple):
    """A regular file that may hold what was checked out, and the blob that was."""

    path: bytes
    blob: str
    size: int


class Unconverted:
    """Compares workspaces with their start points over one object store."""

    def __init__(self, objects: Objects, special_paths: SpecialPaths) -> None:
        self._objects = objects
        self._special_paths = special_paths
        self._rules = rules.Memory()

    def untouched(self, private: PrivateDir, place: Place, start: TreeId, *, attributes: bool) -> list[bytes]:
        """The regular files that are as they were checked out; none where git would store all of them as they are.

        `attributes` says whether there are any in the workspace now.
        """
        if not (attributes or self._special_paths.of(start).attributes or self._rules.of(private).converts):
            return []
        files = Path(namespace.seen(place.tree))
        try:
            kept, doubtful = _by_times(files, index_stats.rows(place.index))
        except ValueError:
            return []  # no index of ours
        return [*kept, *self.as_checked_out(private, place, start, files, doubtful)]

    def as_checked_out(
        self, private: PrivateDir, place: Place, start: TreeId, files: Path, found: Iterable[Candidate]
    ) -> set[bytes]:
        """The paths below `files` with the bytes that the start point's own attributes give, whatever the agent's say."""
        found = [candidate for candidate in found if candidate.size <= _BYTES]
        if not found:
            return set()
        with tempfile.TemporaryDirectory(prefix="attributes-", dir=place.run_dir) as scratch:
            self._write_attributes(start, found, Path(scratch))
            door = private.git(Path(scratch))
            return {path for some in _batches(found) for path in _same(door, files, some)}

    def _write_attributes(self, start: TreeId, found: Iterable[Candidate], folder: Path) -> None:
        """Git reads attributes from its work tree: one that holds those of the start point, and nothing else."""
        above = index_stats.folders(candidate.path for candidate in found)
        for path, blob in self._special_paths.of(start).attributes:
            if path.rpartition(b"/")[0] in above:
                file = folder / os.fsdecode(path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(self._objects.blob(blob))


def _by_times(root: Path, known: dict[bytes, index_stats.Row]) -> tuple[list[bytes], list[Candidate]]:
    """Files that nobody touched, by their times, and those of which only the content can tell.

    No link is followed: what is behind one is not at this path.
    """
    kept, doubtful = [], []
    top, folders, waiting = os.fsencode(root) + b"/", index_stats.folders(known), [b""]
    while waiting:
        check_time()
        above = waiting.pop()
        for entry in survey.listed(top + above) or ():
            path = above + entry.name
            row = known.get(path)
            if row is None:
                if path in folders and entry.is_dir(follow_symlinks=False):
                    waiting.append(path + b"/")
            elif stat.S_ISREG(row.mode) and entry.is_file(follow_symlinks=False):
                if row.vouched and index_stats.is_untouched(entry, row.sign):
                    kept.append(path)
                elif _may_be_same(entry.stat(follow_symlinks=False), row):
                    doubtful.append(Candidate(path, row.oid.hex(), entry.stat(follow_symlinks=False).st_size))
    return kept, doubtful


def _may_be_same(now: os.stat_result, row: index_stats.Row) -> bool:
    """Git sets the size to zero where it could not tell whether a file changed."""
    return row.sign[-1] in (0, now.st_size) and not (now.st_mode ^ row.mode) & stat.S_IXUSR


def _batches(found: Iterable[Candidate]) -> Iterator[list[Candidate]]:
    """Git's answer is held in memory."""
    some: list[Candidate] = []
    total = 0
    for candidate in found:
        if some and total + candidate.size > _BYTES:
            yield some
            some, total = [], 0
        some.append(candidate)
        total += candidate.size
    if some:
        yield some


def _same(git: Git, files: Path, found: list[Candidate]) -> Iterator[bytes]:
    """Git writes them as a checkout would; a name that nothing has stands between two of them."""
    check_time()
    mark = secrets.token_hex(16).encode()
    lines = (b"%s %s\0%s x\0" % (candidate.blob.encode(), candidate.path, mark) for candidate in found)
    answer = git.run("cat-file", "-z", "--batch", "--filters", stdin=b"".join(lines))
    top = os.fsencode(files) + b"/"
    for candidate, piece in zip(found, answer.out.split(b"\n%s missing\n" % mark), strict=False):
        if _content(top + candidate.path, candidate.size) == piece.partition(b"\n")[2]:
            yield candidate.path


def _content(path: bytes, size: int) -> bytes | None:
    """None where it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            return file.read(size + 1)
    except OSError as error:
        if error.errno in MACHINE_FAULTS:
            raise
        return None
