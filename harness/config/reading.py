"""Files that people hand in, read without trusting them: never waits on a pipe, never reads without end."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

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
    raw = sys.stdin.buffer.read(limit + 1) if str(path) == STDIN else _regular(path, limit + 1)
    if len(raw) > limit:
        raise Unreadable(f"is larger than {limit} bytes")
    try:
        return raw.decode("utf-8-sig"), raw
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"is not UTF-8: byte 0x{raw[error.start]:02x} on line {line}") from error


def _regular(path: str | Path, size: int) -> bytes:
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to never returns.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError as error:
        raise Unreadable("does not exist", missing=True) from error
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Unreadable("has a NUL character in its name") from error
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise Unreadable("is a directory")
        if not stat.S_ISREG(mode):
            raise Unreadable(f"is not a regular file; to read from a pipe, give {STDIN} and redirect it")
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(size)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error
    finally:
        os.close(handle)
