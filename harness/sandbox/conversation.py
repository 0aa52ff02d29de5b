"""A conversation with a running program: its stdin and stdout are one socket, and our side of it is held by `talk`."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterable
from typing import SupportsIndex

from harness.model import limits
from harness.ports import Channel, Talk
from harness.sandbox.child import Child


class Conversation:
    """Begins when the program does, and is over when `talk` returns or raises."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._ends: tuple[socket.socket, ...] = ()
        self._task: asyncio.Task[None] | None = None

    def open(self) -> socket.socket:
        """The program's side; raises OSError."""
        self._ends = socket.socketpair()
        return self._ends[1]

    def give_up(self) -> None:
        """Nothing was started that could be talked with."""
        for end in self._ends:
            end.close()

    def begin(self, child: Child) -> asyncio.Task[None]:
        """Starts `talk`; from now on only the program holds its side, so that its end is an end of file."""
        ours, theirs = self._ends
        theirs.close()
        self._task = asyncio.create_task(self._hold(child, ours))
        return self._task

    async def _hold(self, child: Child, ours: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        reader = _Listening(child)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.create_unix_connection(lambda: protocol, sock=ours)
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        try:
            await self._talk(Channel(reader, writer, lambda text: child.keep(text.encode("utf-8", "replace"))))
        finally:
            transport.abort()

    async def break_off(self) -> None:
        """Cancels `talk` while the program can still hear its last words."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=limits.KILL_GRACE_MS / 1000)

    async def close(self) -> None:
        """Called when the program is gone: lets `talk` hear what was said before, then raises what it raised."""
        if self._task is None:
            self.give_up()
            return
        await asyncio.wait({self._task}, timeout=limits.KILL_GRACE_MS / 1000)
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task


class _Listening(asyncio.StreamReader):
    """Takes what the program says as a sign of life."""

    def __init__(self, child: Child) -> None:
        super().__init__(limit=limits.MESSAGE_BYTES)
        self._child = child

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        self._child.keep(b"")
        super().feed_data(data)
