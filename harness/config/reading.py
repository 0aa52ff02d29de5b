"""Files that people hand in, read without trusting them: never waits on a pipe, never reads without end."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

STDIN = "-"


class Unreadable(Exception):
    """Why a file could not be read, as the end of a sentence; `missing` when there is none."""

    def __init__(self, why: str, *, missing: bool = False) -> None:
        super().__init__(why)
        self.missing = missing


def text(path: str | Path, limit: int) -> tuple[str, bytes]:
    """The file as text and as bytes; `-` is standard input; a leading byte order mark is dropped.

    Raises Unreadable.
    """
    raw = content(path, limit)
    try:
        return raw.decode("utf-8-sig"), raw
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"is not UTF-8: byte 0x{raw[error.start]:02x} on line {line}") from error


def content(path: str | Path, limit: int) -> bytes:
    """The file as bytes; `-` is standard input; raises Unreadable."""
    if str(path) == STDIN:
        raw = sys.stdin.buffer.read(limit + 1)
    else:
        with opened(path, limit) as file:
            try:
                raw = file.read(limit + 1)
            except OSError as error:
                raise Unreadable(f"cannot be read: {error.strerror}") from error
    if len(raw) > limit:
        raise Unreadable(f"is larger than {limit} bytes")
    return raw


@contextmanager
def opened(path: str | Path, limit: int) -> Iterator[BinaryIO]:
    """A regular file of at most this size, for reading; raises Unreadable at once for anything else."""
    handle = _handle(path)
    try:
        _check(os.fstat(handle), limit)
        with os.fdopen(handle, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(handle)


def _check(found: os.stat_result, limit: int) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise Unreadable("is a directory")
    if not stat.S_ISREG(found.st_mode):
        raise Unreadable(f"is not a regular file; to read from a pipe, give {STDIN} and redirect it")
    if found.st_size > limit:
        raise Unreadable(f"is larger than {limit} bytes")


def _handle(path: str | Path) -> int:
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to never returns.
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError as error:
        raise Unreadable("does not exist", missing=True) from error
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Unreadable("has a NUL character in its name") from error
