"""The tool calls of one session as the agent tells of them: each update adds to what is known."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from harness.errors import ToolFailed
from harness.model import limits
from harness.model.late import dataclass

if TYPE_CHECKING:
    from acp.schema import ToolCallStart, ToolCallUpdate

ENDED = frozenset({"completed", "failed"})


@dataclass(slots=True)
class Call:
    """`allowed` is what was answered when it asked; None when it never did."""

    id: str
    kind: str = "other"
    title: str = ""
    status: str = "pending"
    paths: list[str] = field(default_factory=list)
    allowed: bool | None = None


class Calls:
    """By id; raises ToolFailed when there are too many to remember."""

    def __init__(self) -> None:
        self._known: dict[str, Call] = {}

    def learn(self, told: ToolCallStart | ToolCallUpdate) -> Call:
        """The call with what this update says of it."""
        call = self._known.get(told.tool_call_id)
        if call is None:
            if len(self._known) >= limits.AGENT_CALLS:
                raise ToolFailed(f"the agent tells of more than {limits.AGENT_CALLS} tool calls")
            call = self._known[told.tool_call_id] = Call(told.tool_call_id[:200])
        call.kind = told.kind or call.kind
        call.title = (told.title or call.title)[: limits.TITLE_CHARS]
        call.status = told.status or call.status
        call.paths = list(dict.fromkeys((*call.paths, *_paths(told))))
        if len(call.paths) > limits.CALL_PATHS:
            raise ToolFailed(f"the agent names more than {limits.CALL_PATHS} paths in one tool call")
        return call

    def unfinished(self) -> list[Call]:
        """Those that began and were never told to have ended."""
        return [call for call in self._known.values() if call.status == "in_progress"]


def _paths(told: ToolCallStart | ToolCallUpdate) -> list[str]:
    named = [place.path for place in told.locations or []]
    edited = [part.path for part in told.content or [] if part.type == "diff"]
    return [path for path in (*edited, *named) if path]
