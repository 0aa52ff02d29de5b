"""A conversation with a running program: a socket to its stdin, a pipe from its stdout, and `talk` between them.

Two ways, not one socket for both: whoever watches its stdout for the end of the reader would take our words for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterable
from typing import BinaryIO, NamedTuple, SupportsIndex

from harness.model import limits
from harness.ports import Channel, Talk
from harness.sandbox.child import Child


class Line(NamedTuple):
    """What the program hears from us by (`ours`, `theirs`) and says to us by (`source`, `sink`)."""

    ours: socket.socket
    theirs: socket.socket
    source: BinaryIO
    sink: int


class Conversation:
    """Begins when the program does, and is over when `talk` returns or raises."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._line: Line | None = None
        self._task: asyncio.Task[None] | None = None

    def open(self) -> Line:
        """Raises OSError."""
        ours, theirs = socket.socketpair()
        try:
            source, sink = os.pipe()
        except OSError:
            ours.close()
            theirs.close()
            raise
        self._line = Line(ours, theirs, os.fdopen(source, "rb", 0), sink)
        return self._line

    def give_up(self) -> None:
        """Nothing was started that could be talked with."""
        if self._line is not None:
            self._hang_up(self._line)
            self._leave_to_the_program(self._line)

    def begin(self, child: Child) -> asyncio.Task[None]:
        """Starts `talk`; from now on only the program holds its side, so that its end is an end of file."""
        if self._line is None:
            raise RuntimeError("a conversation begins after its line was opened")
        self._leave_to_the_program(self._line)
        self._task = asyncio.create_task(self._hold(child, self._line))
        return self._task

    def _leave_to_the_program(self, line: Line) -> None:
        line.theirs.close()
        os.close(line.sink)

    def _hang_up(self, line: Line) -> None:
        line.ours.close()
        line.source.close()

    async def _hold(self, child: Child, line: Line) -> None:
        loop = asyncio.get_running_loop()
        reader = _Listening(child)
        hearing, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader, loop=loop), line.source)
        answers = asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=loop), loop=loop)
        saying, _ = await loop.create_unix_connection(lambda: answers, sock=line.ours)
        writer = asyncio.StreamWriter(saying, answers, None, loop)
        try:
            await self._talk(Channel(reader, writer, lambda text: child.keep(text.encode("utf-8", "replace"))))
        finally:
            hearing.close()
            saying.abort()

    async def break_off(self) -> None:
        """Cancels `talk` while the program can still hear its last words."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=limits.KILL_GRACE_MS / 1000)

    async def close(self) -> None:
        """Called when the program is gone: lets `talk` hear what was said before, then raises what it raised."""
        if self._task is None or self._line is None:
            self.give_up()
            return
        await asyncio.wait({self._task}, timeout=limits.KILL_GRACE_MS / 1000)
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._hang_up(self._line)  # also where the talk was cancelled before it had begun


class _Listening(asyncio.StreamReader):
    """Takes what the program says as a sign of life."""

    def __init__(self, child: Child) -> None:
        super().__init__(limit=limits.MESSAGE_BYTES)
        self._child = child

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        self._child.keep(b"")
        super().feed_data(data)
