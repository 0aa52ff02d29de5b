"""Output cut into whole lines for whoever waits for one of them."""

from __future__ import annotations

from collections.abc import Callable

from harness.model import limits


class Lines:
    """Shows each line once, without its end; a line beyond the limit is skipped whole."""

    def __init__(self, until: Callable[[bytes], bool]) -> None:
        self._until = until
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> bool:
        """Whether one of the lines that end in `data` was the one."""
        first, *others = data.split(b"\n")
        self._add(first)
        found = False
        for piece in others:
            found = self._shown() or found
            self._add(piece)
        return found

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= limits.WATCHED_LINE_BYTES:
            self._begun.append(piece)

    def _shown(self) -> bool:
        line = b"".join(self._begun)
        whole = self._size <= limits.WATCHED_LINE_BYTES
        self._begun, self._size = [], 0
        return whole and self._until(line)
