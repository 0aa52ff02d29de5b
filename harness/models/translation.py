"""Conversations between the port's words and the model library's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.ports import Message, ToolCall, ToolOffer, Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse, ModelResponsePart
    from pydantic_ai.tools import ToolDefinition


def to_library(system: str, messages: Sequence[Message]) -> list[ModelMessage]:
    """Turns of the user and of tools that follow each other become one request."""
    from pydantic_ai import messages as theirs  # noqa: PLC0415 - heavy, and only needed where a model is called

    names = {call.id: call.name for message in messages for call in message.calls}
    found: list[ModelMessage] = []
    waiting: list[ModelRequestPart] = []
    for message in messages:
        if message.role == "assistant":
            found.append(theirs.ModelRequest(parts=waiting, instructions=system))
            waiting = []
            parts: list[ModelResponsePart] = [theirs.TextPart(message.text)] if message.text else []
            parts += [theirs.ToolCallPart(call.name, dict(call.arguments), call.id) for call in message.calls]
            found.append(theirs.ModelResponse(parts=parts))
        elif message.role == "tool":
            called = message.call_id or ""
            waiting.append(theirs.ToolReturnPart(names.get(called, ""), message.text, called))
        else:
            waiting.append(theirs.UserPromptPart(message.text))
    return [*found, theirs.ModelRequest(parts=waiting, instructions=system)]


def definitions(tools: Sequence[ToolOffer]) -> list[ToolDefinition]:
    from pydantic_ai.tools import ToolDefinition  # noqa: PLC0415 - as above

    return [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
        for tool in tools
    ]


def from_library(response: ModelResponse) -> Message:
    """What the model said; arguments that are no JSON object arrive as they are, under a name that no tool takes."""
    from pydantic_ai.messages import TextPart, ToolCallPart  # noqa: PLC0415 - as above

    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = tuple(
        ToolCall(part.tool_call_id, part.tool_name, part.args_as_dict())
        for part in response.parts
        if isinstance(part, ToolCallPart)
    )
    return Message("assistant", text, calls)


def usage(messages: Sequence[ModelMessage]) -> Usage:
    """Tokens and price of the model's answers among these messages."""
    from pydantic_ai.messages import ModelResponse  # noqa: PLC0415 - as above

    total = Usage()
    for message in messages:
        if isinstance(message, ModelResponse):
            total += Usage(1, message.usage.input_tokens, message.usage.output_tokens, _price(message))
    return total


def _price(response: ModelResponse) -> float | None:
    """By the price table that comes with the library; None for a model that it does not know."""
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None
