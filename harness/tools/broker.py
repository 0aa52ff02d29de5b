"""The broker: every call of an agent is checked against its contract, done, and told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from harness.errors import ContractViolation, OrchestrixError, ToolFailed
from harness.model import limits
from harness.model.contract import Contract
from harness.model.plan import ApplyPatch, DeleteFile, EditFile, MoveFile, WriteFile
from harness.ports import Execute
from harness.tools import apply_patch, files, run
from harness.tools.inside import Inside

_Arguments = TypeVar("_Arguments", bound=BaseModel)
# A permission that allows more than the tool of its own name.
_ALSO_ALLOWS = {"shell": "run"}
# Arguments that carry content: their size is told, not what they say, which may be long or secret.
_BULK = frozenset({"content", "old", "new", "patch"})


class OnTool(Protocol):
    """Told of every call and every denial."""

    def __call__(self, tool: str, arguments: Mapping[str, Any], *, allowed: bool, ok: bool, message: str) -> None: ...


FILE_TOOLS: Mapping[str, tuple[type[BaseModel], Callable[[Any, Inside], str]]] = {
    "read_file": (files.ReadFile, files.read_file),
    "write_file": (WriteFile, files.write_file),
    "edit_file": (EditFile, files.edit_file),
    "delete_file": (DeleteFile, files.delete_file),
    "move_file": (MoveFile, files.move_file),
    "apply_patch": (ApplyPatch, apply_patch.apply_patch),
}
TOOLS = (*FILE_TOOLS, "run")


def allows(contract: Contract, tool: str) -> bool:
    """Whether the contract lists this tool, by its own name or by a permission that includes it."""
    return any(tool in {name, _ALSO_ALLOWS.get(name)} for name in contract.permissions.allowed_tools)


class Broker:
    """The tools of one attempt."""

    def __init__(self, contract: Contract, workspace: Path, execute: Execute, on_tool: OnTool) -> None:
        self._contract = contract
        self._inside = Inside(workspace)
        self._execute = execute
        self._on_tool = on_tool

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """What the tool answered; raises ContractViolation when it is not allowed, ToolFailed when it did not work."""
        try:
            answer = await self._do(tool, arguments)
        except OrchestrixError as error:
            allowed = not isinstance(error, ContractViolation)
            self._on_tool(tool, told(arguments), allowed=allowed, ok=False, message=error.message)
            raise
        self._on_tool(tool, told(arguments), allowed=True, ok=True, message="")
        return answer

    async def _do(self, tool: str, arguments: Mapping[str, Any]) -> str:
        self._permit(tool)
        if tool == "run":
            return await run.run(_checked(tool, run.Run, arguments), self._execute)
        shape, act = FILE_TOOLS[tool]
        return act(_checked(tool, shape, arguments), self._inside)

    def _permit(self, tool: str) -> None:
        step = self._contract.parent.step_idx
        if tool not in TOOLS:
            raise ContractViolation(
                f"step {step} called an unknown tool {tool!r:.100}", hint=f"the tools are {', '.join(TOOLS)}"
            )
        if not allows(self._contract, tool):
            allowed = ", ".join(self._contract.permissions.allowed_tools) or "none"
            raise ContractViolation(
                f"step {step} may not use the tool {tool}", hint=f"its contract allows: {allowed}; see `allowed_tools`"
            )


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
