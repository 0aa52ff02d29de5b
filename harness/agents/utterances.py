"""What a model says, written into the step's log while it says it: bounded, and safe to show."""

from __future__ import annotations

import os
from pathlib import Path

from harness.model import limits
from harness.model.visible import visible


class Utterances:
    """Appends to a log that programs of the step write to in between, so nothing is held open."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._left = limits.OUTPUT_HEAD_BYTES

    def hear(self, text: str) -> None:
        """Writes what has room."""
        self._write(visible(text).encode("utf-8", "replace"))

    def end_turn(self) -> None:
        """A turn ends with its line."""
        self._write(b"\n")

    def _write(self, data: bytes) -> None:
        data = data[: self._left]
        if not data:
            return
        self._left -= len(data)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(handle, data)
        finally:
            os.close(handle)
