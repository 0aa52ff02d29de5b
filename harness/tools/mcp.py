"""Tools of MCP servers: each server runs through the sandbox door for as long as they are offered."""

from __future__ import annotations

import asyncio
import contextlib
import json
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.config.mcp_file import McpServer
from harness.errors import OrchestrixError, ToolFailed
from harness.model import limits
from harness.model.late import dataclass
from harness.ports import Channel, Execute
from harness.tools import mcp_wire

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.types import CallToolResult
    from mcp.types import Tool as ServerTool

INVALID_OUTPUT = "invalid_output"
_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool of a server; `schema` is the server's own, and the server is held to its output schema."""

    description: str
    schema: Mapping[str, Any]
    call: Callable[[Mapping[str, Any]], Awaitable[str]]
    fallback: str | None = None


def name_of(server: str, tool: str) -> str:
    return f"mcp:{server}/{tool}"


@contextlib.asynccontextmanager
async def opened(servers: Mapping[str, McpServer], execute: Execute) -> AsyncIterator[dict[str, RemoteTool]]:
    """Every tool of these servers; raises ToolFailed when one does not start. The servers are ended with the context."""
    if servers:
        _library()
    async with contextlib.AsyncExitStack() as stack:
        tools: dict[str, RemoteTool] = {}
        for name, server in servers.items():
            tools |= await stack.enter_async_context(_Session(name, server, execute).open())
        yield tools


def _library() -> None:
    try:
        import mcp  # noqa: F401, PLC0415 - heavy, and only needed where a server is used
    except ImportError as error:
        raise ToolFailed(
            "the library for MCP is not installed", hint="pip install 'orchestrix-harness[mcp]'"
        ) from error


class _Session:
    """One running server."""

    def __init__(self, name: str, server: McpServer, execute: Execute) -> None:
        self._name = name
        self._server = server
        self._execute = execute
        self._over = asyncio.Event()
        self._ready: asyncio.Future[tuple[ClientSession, list[ServerTool]]] = asyncio.get_running_loop().create_future()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[dict[str, RemoteTool]]:
        running = asyncio.create_task(self._run())
        try:
            session, tools = await self._started(running)
            yield {name_of(self._name, tool.name): self._tool(session, tool) for tool in tools[: limits.MCP_TOOLS]}
        finally:
            self._over.set()
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError, OrchestrixError):
                await running

    async def _started(self, running: asyncio.Task[None]) -> tuple[ClientSession, list[ServerTool]]:
        waits: set[asyncio.Future[Any]] = {running, self._ready}
        await asyncio.wait(waits, timeout=limits.MCP_START_MS / 1000, return_when=asyncio.FIRST_COMPLETED)
        if self._ready.done():
            return self._ready.result()
        if running.done():
            running.result()
            raise ToolFailed(f"the MCP server {self._name} ended before it was ready", hint="see its log")
        raise ToolFailed(f"the MCP server {self._name} was not ready in time", hint="see its log")

    async def _run(self) -> None:
        """Until the session is over; raises ToolFailed for whatever ends it before."""
        try:
            await self._execute.talk(
                self._server.argv, self._talk, purpose="mcp", env=self._server.env, name=f"mcp-{self._name}"
            )
        except OrchestrixError:
            raise
        except Exception as error:  # the library raises groups of anything; a server's fault is never ours
            if _is_ours(_cause(error)):
                raise
            raise ToolFailed(
                f"the MCP server {self._name} failed: {_cause(error)!s:.300}", hint="see its log"
            ) from error

    async def _talk(self, channel: Channel) -> None:
        async with mcp_wire.session(channel) as session:
            tools = (await session.list_tools()).tools
            self._ready.set_result((session, tools))
            await self._over.wait()

    def _tool(self, session: ClientSession, tool: ServerTool) -> RemoteTool:
        async def call(arguments: Mapping[str, Any]) -> str:
            return await _called(session, tool.name, arguments)

        description = (tool.description or tool.title or tool.name)[: limits.MCP_DESCRIPTION_CHARS]
        return RemoteTool(description, tool.input_schema, call, self._server.fallback.get(tool.name))


def _cause(error: BaseException) -> BaseException:
    return _cause(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _is_ours(error: BaseException) -> bool:
    """Whether a line of the harness raised it: then it is a bug, and not what a server did."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and not isinstance(error, OSError) and Path(frames[-1].filename).is_relative_to(_PACKAGE)


async def _called(session: ClientSession, name: str, arguments: Mapping[str, Any]) -> str:
    """The answer as text; raises ToolFailed, with `ending` INVALID_OUTPUT where it breaks the tool's own schema."""
    from mcp import MCPError  # noqa: PLC0415 - heavy, and only needed where a server is used

    try:
        result = await session.call_tool(name, dict(arguments), read_timeout_seconds=limits.MCP_CALL_MS / 1000)
    except MCPError as error:
        raise ToolFailed(f"{name}: {error!s:.500}") from error
    except RuntimeError as error:  # what the library raises where an answer is not what the schema promises
        raise ToolFailed(f"{name}: {error!s:.500}", ending=INVALID_OUTPUT) from error
    text = _text(result)
    if result.is_error:
        raise ToolFailed(f"{name}: {text[:500]}")
    return text


def _text(result: CallToolResult) -> str:
    if result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)[: limits.BUILTIN_RESULT_CHARS]
    parts = [getattr(part, "text", f"[{part.type}]") for part in result.content]
    return "\n".join(parts)[: limits.BUILTIN_RESULT_CHARS]
