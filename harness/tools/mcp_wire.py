"""An MCP session over a program that is talked with: one JSON message for each line, in both directions."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from harness.ports import Channel

if TYPE_CHECKING:
    from mcp import ClientSession


@contextlib.asynccontextmanager
async def session(channel: Channel) -> AsyncIterator[ClientSession]:
    """A session after its handshake."""
    import anyio  # noqa: PLC0415 - comes with the library
    from mcp import ClientSession  # noqa: PLC0415 - heavy, and only needed where a server is used

    heard, hears = anyio.create_memory_object_stream[Any](0)
    says, said = anyio.create_memory_object_stream[Any](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_listen, channel, heard)
        group.start_soon(_speak, channel, said)
        async with ClientSession(hears, says) as made:
            await made.initialize()
            yield made
        group.cancel_scope.cancel()


async def _listen(channel: Channel, heard: Any) -> None:
    """What the server says; a line that is no message is the session's to complain about."""
    from mcp.shared.message import SessionMessage  # noqa: PLC0415 - as above
    from mcp.types import jsonrpc_message_adapter  # noqa: PLC0415 - as above
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    async with heard:
        while line := await channel.reader.readline():
            try:
                message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValidationError as error:
                await heard.send(error)
                continue
            await heard.send(message)


async def _speak(channel: Channel, said: Any) -> None:
    async with said:
        async for message in said:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            channel.writer.write(f"{text}\n".encode())
            await channel.writer.drain()
