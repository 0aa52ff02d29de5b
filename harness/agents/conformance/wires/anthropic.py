"""Anthropic Messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from harness.agents.conformance.turns import INPUT_TOKENS, OUTPUT_TOKENS, Ask, Refuse, Reply, Text, Tool
from harness.agents.conformance.wires.wire import Event, words

_ERRORS = {
    "rate_limited": (429, "rate_limit_error", "This request would exceed your rate limit."),
    "auth_failed": (401, "authentication_error", "invalid x-api-key"),
    "context_full": (400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
}


def ask(body: Mapping[str, Any], model: str) -> Ask:
    """A user message that carries tool results is not a plain one, whatever else it says."""
    users: list[str] = []
    results: list[str] = []
    for message in body.get("messages", []):
        if message.get("role") != "user":
            continue
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        answers = [words(part.get("content")) for part in parts if part.get("type") == "tool_result"]
        if answers:
            results += answers
        else:
            users.append(words(content))
            results = []
    return Ask(
        model=body.get("model", model),
        stream=bool(body.get("stream")),
        system=words(body.get("system", "")),
        users=tuple(users),
        results=tuple(results),
        tools=tuple(Tool.from_schema(tool["name"], tool.get("input_schema")) for tool in body.get("tools") or ()),
    )


def _block(asked: Ask, reply: Reply) -> dict[str, Any]:
    if isinstance(reply, Text):
        return {"type": "text", "text": reply.text}
    return {"type": "tool_use", "id": f"toolu_{asked.earlier}", "name": reply.name, "input": dict(reply.arguments)}


def _message(asked: Ask, content: list[dict[str, Any]], stop: str | None, output: int) -> dict[str, Any]:
    return {
        "id": f"msg_{asked.earlier}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": output},
    }


def _stop(reply: Reply) -> str:
    return "end_turn" if isinstance(reply, Text) else "tool_use"


def whole(asked: Ask, reply: Reply) -> dict[str, Any]:
    return _message(asked, [_block(asked, reply)], _stop(reply), OUTPUT_TOKENS)


def events(asked: Ask, reply: Reply) -> Iterator[Event]:
    block = _block(asked, reply)
    if isinstance(reply, Text):
        start, delta = {**block, "text": ""}, {"type": "text_delta", "text": reply.text}
    else:
        start, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    rows: list[tuple[str, dict[str, Any]]] = [
        ("message_start", {"message": _message(asked, [], None, 1)}),
        ("content_block_start", {"index": 0, "content_block": start}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        (
            "message_delta",
            {
                "delta": {"stop_reason": _stop(reply), "stop_sequence": None},
                "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS},
            },
        ),
        ("message_stop", {}),
    ]
    for name, data in rows:
        yield name, {"type": name, **data}


def error(refusal: Refuse) -> tuple[int, dict[str, Any]]:
    status, kind, message = _ERRORS[refusal.complaint]
    return status, {"type": "error", "error": {"type": kind, "message": message}}
