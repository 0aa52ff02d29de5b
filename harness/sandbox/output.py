"""What a process wrote, kept within bounds: the head, a line that says how much is missing, the tail."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from harness.errors import EnvironmentProblem
from harness.model import limits
from harness.sandbox.redact import Redactor, plain_text

# One character takes up to four bytes.
_TAIL_BYTES = 4 * limits.TOOL_OUTPUT_CHARS
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Transcript:
    """Appends to a log file. Beyond the head the file's end is a ring, set right by `close`: memory stays flat."""

    def __init__(self, path: Path, head: int, tail: int, secrets: tuple[str, ...] = ()) -> None:
        self._path = path
        self._handle = self._open()
        self._start = os.lseek(self._handle, 0, os.SEEK_END)
        self._head = head
        self._tail = max(tail, 1)
        self._closed = False
        self._redactor = Redactor(secrets)
        self.written = 0

    def _open(self) -> int:
        try:
            try:
                return os.open(self._path, _FLAGS, 0o600)
            except FileNotFoundError:  # the first log of a run: its directory is missing
                self._path.parent.mkdir(parents=True, exist_ok=True)
                return os.open(self._path, _FLAGS, 0o600)
        except OSError as error:
            raise self._problem(error) from error

    @property
    def truncated(self) -> bool:
        return self.written > self._head + self._tail

    def write(self, data: bytes) -> None:
        """Keeps what has a place; raises EnvironmentProblem when the log cannot be written."""
        self._keep(self._redactor.feed(data))

    def _keep(self, data: bytes) -> None:
        try:
            for offset, piece in self._places(data):
                self._write_at(piece, self._start + offset)
        except OSError as error:
            raise self._problem(error) from error
        self.written += len(data)

    def _places(self, data: bytes) -> list[tuple[int, bytes]]:
        """Where each piece of `data` goes: into the head, then round and round behind it."""
        places = []
        to_head = max(0, min(len(data), self._head - self.written))
        if to_head:
            places.append((self.written, data[:to_head]))
        rest = data[to_head:]
        skipped = max(0, len(rest) - self._tail)
        position = (self.written + to_head + skipped - self._head) % self._tail
        rest = rest[skipped:]
        while rest:
            piece = rest[: self._tail - position]
            places.append((self._head + position, piece))
            rest, position = rest[len(piece) :], 0
        return places

    def _write_at(self, data: bytes, offset: int) -> None:
        while data:
            count = os.pwrite(self._handle, data, offset)
            data, offset = data[count:], offset + count

    def close(self) -> str:
        """Puts the ring in order, marks what is missing, and gives the last characters as text for people."""
        try:
            self._keep(self._redactor.rest())
            if self.truncated:
                self._straighten()
            raw = self._last() if self.written else b""
        except OSError as error:
            raise self._problem(error) from error
        finally:
            os.close(self._handle)
            self._closed = True
        return plain_text(raw)[-limits.TOOL_OUTPUT_CHARS :]

    def _last(self) -> bytes:
        end = os.lseek(self._handle, 0, os.SEEK_END)
        begin = max(self._start, end - _TAIL_BYTES)
        return os.pread(self._handle, end - begin, begin)

    def abandon(self) -> None:
        """Lets go of the file as it is, after something worse happened."""
        if not self._closed:
            with contextlib.suppress(OSError, EnvironmentProblem):
                self.close()

    def _straighten(self) -> None:
        ring = self._start + self._head
        turned = (self.written - self._head) % self._tail
        older = os.pread(self._handle, self._tail - turned, ring + turned)
        newer = os.pread(self._handle, turned, ring)
        marker = f"\n[... {self.written - self._head - self._tail} bytes left out ...]\n".encode()
        self._write_at(marker + older + newer, ring)

    def _problem(self, error: OSError) -> EnvironmentProblem:
        return EnvironmentProblem(
            f"the log {self._path} cannot be written: {error.strerror}",
            hint="free space or descriptors, check its permissions, then resume",
            path=str(self._path),
        )


class Lines:
    """Cuts output into lines for a caller that waits for one of them; a line beyond the limit is skipped whole."""

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
