"""What an index says of the files that it was written for, to the fraction of a second.

Git compares whole seconds, so that everything which was checked out in the second of the index is read again: right
after a checkout that is all of it. Here the fractions count, too.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_HEADER, _SECOND = struct.Struct(">4sII"), 1_000_000_000
_ENTRY = struct.Struct(">IIII4xII8xI20sH")  # times of change and of content, inode, mode, size, id and flags
_EXTENSION, _CHECKSUM = struct.Struct(">4sI"), 20
_SIGNATURE, _VERSIONS = b"DIRC", (2, 3)
_EXTENDED = 0x4000  # two more bytes of flags, in version 3
_WORD = 0xFFFFFFFF
Sign = tuple[int, int, int, int]
"""Time of change, time of content, inode and size."""


class Row(NamedTuple):
    """One entry of an index; `vouched` says that whoever finds the same sign finds the same file."""

    sign: Sign
    oid: bytes
    mode: int
    vouched: bool


def by(index: Path) -> dict[bytes, tuple[Sign, bytes]]:
    """Path -> what its file looked like, and the id of its content; raises ValueError for an index of another kind.

    Without those that are not older than the index itself: they may have changed unseen.
    """
    written = _written(index)
    return {path: (sign, oid) for path, sign, oid, _ in _read(index.read_bytes()) if sign[0] < written}


def rows(index: Path) -> dict[bytes, Row]:
    """Every entry; raises ValueError for an index of another kind."""
    written = _written(index)
    return {path: Row(sign, oid, mode, sign[0] < written) for path, sign, oid, mode in _read(index.read_bytes())}


def is_untouched(entry: os.DirEntry[bytes], sign: Sign) -> bool:
    """Whatever an agent does to a file, it cannot set its time of change back."""
    now = entry.stat(follow_symlinks=False)
    return sign == (now.st_ctime_ns, now.st_mtime_ns, now.st_ino & _WORD, now.st_size & _WORD)


def folders(paths: Iterable[bytes]) -> set[bytes]:
    """Every directory above these paths, the root too."""
    found = {b""}
    for path in paths:
        folder = path.rpartition(b"/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition(b"/")[0]
    return found


def _written(index: Path) -> int:
    status = index.stat()
    return min(status.st_mtime_ns, status.st_ctime_ns)


def _read(raw: bytes) -> Iterator[tuple[bytes, Sign, bytes, int]]:
    try:
        signature, version, count = _HEADER.unpack_from(raw)
        if signature != _SIGNATURE or version not in _VERSIONS:
            raise ValueError("an index of another kind")
        at = _HEADER.size
        for _ in range(count):
            seconds, fraction, content, content_fraction, inode, mode, size, oid, flags = _ENTRY.unpack_from(raw, at)
            name = at + _ENTRY.size + (2 if flags & _EXTENDED else 0)
            end = raw.index(b"\0", name)
            sign = seconds * _SECOND + fraction, content * _SECOND + content_fraction, inode, size
            yield raw[name:end], sign, oid, mode
            at += (end - at + 8) & ~7  # an entry ends with one to eight zeros
        _check_extensions(raw, at)
    except struct.error as error:
        raise ValueError("an index that is not whole") from error


def _check_extensions(raw: bytes, at: int) -> None:
    """Raises ValueError where the entries are not all there is: git gives what may be ignored a name in capitals."""
    while at < len(raw) - _CHECKSUM:
        name, size = _EXTENSION.unpack_from(raw, at)
        if not name[:1].isupper():
            raise ValueError("an index that is not all in its entries")
        at += _EXTENSION.size + size
