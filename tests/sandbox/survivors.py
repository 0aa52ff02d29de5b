"""Finds the processes of a test by a word in their argument lists."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path


def marked(word: str) -> list[int]:
    """Live processes, but this one, that carry the word."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            alive = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] not in b"ZX"
            if alive and word.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def kill_marked(word: str) -> None:
    for pid in marked(word):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_for_marked(word: str, count: int, seconds: float = 20.0) -> list[int]:
    """Polls until so many live processes carry the word."""
    until = time.monotonic() + seconds
    while True:
        found = marked(word)
        if (len(found) >= count) if count else not found:
            return found
        assert time.monotonic() < until, f"{len(found)} processes carry {word}, not {count}"
        time.sleep(0.01)
