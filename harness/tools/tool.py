"""What a tool is: its arguments, what it does with them, and what it can reach."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from harness.model import limits
from harness.model.contract import Contract
from harness.model.late import dataclass
from harness.ports import Execute
from harness.tools.inside import Inside

# The broker checks sizes and characters; a model only needs to see the form.
_LEFT_OUT = frozenset({"title", "pattern", "maxLength", "minLength"})


class Arguments(BaseModel):
    """Strict: a wrong type or an unknown name is refused, never guessed at."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


@dataclass(frozen=True, slots=True)
class Reach:
    """What every tool of one attempt works with."""

    contract: Contract
    inside: Inside
    execute: Execute
    step: str


@dataclass(frozen=True, slots=True)
class Tool:
    """`description` is for models; `changes` names the paths that a call would change."""

    description: str
    arguments: type[BaseModel]
    act: Callable[[Any, Reach], Awaitable[str]]
    changes: Callable[[Any], list[str]] = lambda _: []

    def parameters(self) -> dict[str, Any]:
        """The arguments as a JSON Schema, without what only the broker needs."""
        return _plain(self.arguments.model_json_schema())


def on_files(act: Callable[[Any, Inside], str]) -> Callable[[Any, Reach], Awaitable[str]]:
    """A tool that needs the files of the workspace and nothing else."""

    async def acting(arguments: Any, reach: Reach) -> str:
        return act(arguments, reach.inside)

    return acting


def listed(names: Sequence[str], nothing: str) -> str:
    """One name for each line, cut at a limit that is named in the answer."""
    shown = list(names[: limits.TOOL_ENTRIES])
    if len(names) > limits.TOOL_ENTRIES:
        shown.append(f"[... {len(names) - limits.TOOL_ENTRIES} more ...]")
    return "\n".join(shown) or nothing


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "properties":
            found[name] = {field: _plain(inner) for field, inner in value.items()}
        elif name not in _LEFT_OUT:
            found[name] = _plain_value(value)
    return found


def _plain_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _plain(value)
    return [_plain_value(item) for item in value] if isinstance(value, list) else value
