"""What an index says of the files that it was written for, to the fraction of a second.

Git compares whole seconds, so that everything which was checked out in the second of the index is read again: right
after a checkout that is all of it. Here the fractions count, too.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

_HEADER, _SECOND = struct.Struct(">4sII"), 1_000_000_000
_ENTRY = struct.Struct(">IIII4xI12xI20s2x")  # times of change and of content, inode, size and id, before the name
_PLAIN = (b"DIRC", 2)
_WORD = 0xFFFFFFFF
Sign = tuple[int, int, int, int]


def by(index: Path) -> dict[bytes, tuple[Sign, bytes]]:
    """Path -> what its file looked like, and the id of its content; raises ValueError for an index of another kind.

    Without those that are not older than the index itself: they may have changed unseen.
    """
    status = index.stat()
    try:
        return _read(index.read_bytes(), min(status.st_mtime_ns, status.st_ctime_ns))
    except struct.error as error:
        raise ValueError("an index that is not whole") from error


def is_untouched(entry: os.DirEntry[bytes], sign: Sign) -> bool:
    """Whatever an agent does to a file, it cannot set its time of change back."""
    now = entry.stat(follow_symlinks=False)
    return sign == (now.st_ctime_ns, now.st_mtime_ns, now.st_ino & _WORD, now.st_size & _WORD)


def _read(raw: bytes, written: int) -> dict[bytes, tuple[Sign, bytes]]:
    signature, version, count = _HEADER.unpack_from(raw)
    if (signature, version) != _PLAIN:
        raise ValueError("an index of another kind")
    found: dict[bytes, tuple[Sign, bytes]] = {}
    at = _HEADER.size
    for _ in range(count):
        seconds, fraction, content_seconds, content_fraction, inode, size, oid = _ENTRY.unpack_from(raw, at)
        end = raw.index(b"\0", at + _ENTRY.size)
        changed = seconds * _SECOND + fraction
        if changed < written:
            sign = changed, content_seconds * _SECOND + content_fraction, inode, size
            found[raw[at + _ENTRY.size : end]] = sign, oid
        at += (end - at + 8) & ~7  # an entry ends with one to eight zeros
    return found
