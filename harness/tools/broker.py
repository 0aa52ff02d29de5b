"""The broker: every call of an agent is checked against its contract, done, and told."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from harness.errors import ContractViolation, OrchestrixError, ToolFailed
from harness.model import limits
from harness.model.contract import Contract
from harness.model.globs import Ownership
from harness.model.late import dataclass
from harness.ports import Execute, ToolOffer
from harness.tools.inside import Inside
from harness.tools.permission import allows
from harness.tools.tool import Reach, Tool

if TYPE_CHECKING:
    from harness.config.mcp_file import McpServer
    from harness.tools.mcp import RemoteTool

_Arguments = TypeVar("_Arguments", bound=BaseModel)
# Arguments that carry content: their size is told, not what they say, which may be long or secret.
_BULK = frozenset({"content", "old", "new", "patch", "summary"})


class OnTool(Protocol):
    """Told of every call and every denial."""

    def __call__(self, tool: str, arguments: Mapping[str, Any], *, allowed: bool, ok: bool, message: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Guard:
    """What binds an agent that decides for itself beyond its contract: tools it lacks, and where it may not write."""

    denied: frozenset[str] = frozenset()
    owned_only: bool = False


@dataclass(frozen=True, slots=True)
class Remote:
    """MCP servers that may be started; `skipped` says of single others, and `why` of all the rest, why they cannot be."""

    servers: Mapping[str, McpServer] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    why: str = ""


class Broker:
    """The tools of one attempt."""

    def __init__(
        self,
        contract: Contract,
        workspace: Path,
        execute: Execute,
        on_tool: OnTool,
        *,
        step: str | None = None,
        guard: Guard | None = None,
        remote: Remote | None = None,
    ) -> None:
        """`step` is its path id, which denials name."""
        self._contract = contract
        self._step = str(contract.parent.step_idx) if step is None else step
        self._servers = remote or Remote()
        self._remote: dict[str, RemoteTool] = {}
        self._reach = Reach(contract, Inside(workspace), execute, self._step)
        self._on_tool = on_tool
        self._guard = guard or Guard()

    @contextlib.asynccontextmanager
    async def offered(self) -> AsyncIterator[Sequence[ToolOffer]]:
        """What a model may be offered: what would not be denied. MCP servers run as long as this is open."""
        from harness.tools import mcp  # noqa: PLC0415 - as above
        from harness.tools.table import TOOLS  # noqa: PLC0415 - as above

        own = [
            ToolOffer(name, tool.description, tool.parameters())
            for name, tool in TOOLS.items()
            if allows(self._contract, name) and name not in self._guard.denied and name != "run"
        ]
        async with mcp.opened(self._wanted_servers(), self._reach.execute) as remote:
            self._remote = {name: tool for name, tool in remote.items() if allows(self._contract, name)}
            yield own + [
                ToolOffer(_spelled(name), tool.description, tool.schema) for name, tool in self._remote.items()
            ]

    def _wanted_servers(self) -> dict[str, McpServer]:
        """A server of which nothing is allowed is not started; one that cannot be is noted, and the attempt goes on."""
        known, wanted = self._servers, {}
        prefixes = [name.partition("/")[0] for name in self._contract.permissions.allowed_tools]
        for prefix in dict.fromkeys(one for one in prefixes if one.startswith("mcp:")):
            name = prefix.removeprefix("mcp:")
            if name in known.servers:
                wanted[name] = known.servers[name]
            else:
                why = known.skipped.get(name, known.why)
                self._on_tool(
                    prefix, {}, allowed=False, ok=False, message=f"step {self._step}: {prefix} is left out: {why}"
                )
        return wanted

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """What the tool answered; raises ContractViolation when it is not allowed, ToolFailed when it did not work."""
        tool = next((name for name in self._remote if _spelled(name) == tool), tool)
        try:
            answer = await self._do(tool, arguments)
        except OrchestrixError as error:
            allowed = not isinstance(error, ContractViolation)
            self._on_tool(tool, told(arguments), allowed=allowed, ok=False, message=error.message)
            raise
        self._on_tool(tool, told(arguments), allowed=True, ok=True, message="")
        return answer

    async def _do(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name in self._remote:
            return await self._do_remote(name, arguments)
        tool = self._permitted(name)
        checked = _checked(name, tool.arguments, arguments)
        if self._guard.owned_only:
            self._within_ownership(tool.changes(checked))
        return await tool.act(checked, self._reach)

    async def _do_remote(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Once more where the answer breaks the tool's own schema, then the fallback, which is a call like any other."""
        from harness.tools import mcp  # noqa: PLC0415 - as above

        tool = self._remote[name]
        for last in (False, True):
            try:
                return await tool.call(arguments)
            except ToolFailed as error:
                if error.details.get("ending") != mcp.INVALID_OUTPUT or (last and tool.fallback is None):
                    raise
        return await self.call(tool.fallback or "", arguments)

    def _permitted(self, tool: str) -> Tool:
        from harness.tools.table import TOOLS  # noqa: PLC0415 - an agent that calls no tool does not pay for them

        step = self._step
        if tool not in TOOLS:
            raise ContractViolation(
                f"step {step} called an unknown tool {tool!r:.100}", hint=f"the tools are {', '.join(TOOLS)}"
            )
        if not allows(self._contract, tool):
            allowed = ", ".join(self._contract.permissions.allowed_tools) or "none"
            raise ContractViolation(
                f"step {step} may not use the tool {tool}", hint=f"its contract allows: {allowed}; see `allowed_tools`"
            )
        if tool in self._guard.denied:
            raise ContractViolation(
                f"step {step} may not use the tool {tool}: it is guarded",
                hint="the user can enable it: see `builtin.enable`, or `orchestrix.enable` in a trusted .mcp.json",
            )
        return TOOLS[tool]

    def _within_ownership(self, paths: Sequence[str]) -> None:
        """The verdict stands behind this; here a model learns at once instead of after its work."""
        ownership = self._contract.ownership
        owned = Ownership(ownership.paths)
        outside = [path for path in paths if not owned.covers(path) and path != self._contract.report_path]
        if outside and not ownership.exceptions_allowed:
            raise ContractViolation(
                f"step {self._step} may not change {outside[0]!r:.200}",
                hint=f"it owns {', '.join(ownership.paths or ())}",
            )


def _spelled(name: str) -> str:
    """A name as providers accept it for a tool."""
    return name.replace(":", "__").replace("/", "__")


def _checked(tool: str, shape: type[_Arguments], arguments: Mapping[str, Any]) -> _Arguments:
    try:
        return shape.model_validate(dict(arguments))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "arguments"
        raise ToolFailed(f"{tool}: {place}: {first['msg']}", hint="correct the arguments") from error


def told(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as they may be recorded: bounded, and without content."""
    return {str(name)[:100]: _told_value(str(name), value) for name, value in list(arguments.items())[:20]}


def _told_value(name: str, value: Any) -> Any:
    if isinstance(value, str):
        if name in _BULK:
            return f"<{len(value)} characters>"
        return value if len(value) <= limits.TOOL_ARGUMENT_CHARS else f"{value[: limits.TOOL_ARGUMENT_CHARS]}..."
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_told_value(name, item) for item in value[:50]]
    return f"<{type(value).__name__}>"
