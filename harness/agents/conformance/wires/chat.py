"""OpenAI Chat Completions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from harness.agents.conformance.turns import INPUT_TOKENS, OUTPUT_TOKENS, Ask, Refuse, Reply, Text, Tool
from harness.agents.conformance.wires.wire import Event, words

ERRORS = {
    "rate_limited": (429, "rate_limit_exceeded", "Rate limit reached for requests."),
    "auth_failed": (401, "invalid_api_key", "Incorrect API key provided."),
    "context_full": (
        400,
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 250000 tokens.",
    ),
    "overloaded": (503, "server_error", "The server is overloaded."),
}
_USAGE = {
    "prompt_tokens": INPUT_TOKENS,
    "completion_tokens": OUTPUT_TOKENS,
    "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
}


def ask(body: Mapping[str, Any], model: str) -> Ask:
    system: list[str] = []
    users: list[str] = []
    results: list[str] = []
    for message in body.get("messages", []):
        text = words(message.get("content"))
        if message.get("role") in {"system", "developer"}:
            system.append(text)
        elif message.get("role") == "tool":
            results.append(text)
        elif message.get("role") == "user":
            users.append(text)
            results = []
    functions = [tool["function"] for tool in body.get("tools") or () if tool.get("type") == "function"]
    return Ask(
        model=body.get("model", model),
        stream=bool(body.get("stream")),
        system="\n".join(system),
        users=tuple(users),
        results=tuple(results),
        tools=tuple(Tool.from_schema(function["name"], function.get("parameters")) for function in functions),
    )


def _message(asked: Ask, reply: Reply) -> dict[str, Any]:
    if isinstance(reply, Text):
        return {"role": "assistant", "content": reply.text}
    function = {"name": reply.name, "arguments": json.dumps(dict(reply.arguments))}
    call = {"id": f"call_{asked.earlier}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _finish(reply: Reply) -> str:
    return "stop" if isinstance(reply, Text) else "tool_calls"


def _head(asked: Ask, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{asked.earlier}", "object": kind, "created": 0, "model": asked.model}


def whole(asked: Ask, reply: Reply) -> dict[str, Any]:
    choice = {"index": 0, "message": _message(asked, reply), "finish_reason": _finish(reply)}
    return {**_head(asked, "chat.completion"), "choices": [choice], "usage": _USAGE}


def events(asked: Ask, reply: Reply) -> Iterator[Event]:
    head = _head(asked, "chat.completion.chunk")
    message = _message(asked, reply)
    for call in message.get("tool_calls", ()):
        call["index"] = 0
    rows = [(message, None), ({}, _finish(reply))]
    for delta, finish in rows:
        yield None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    yield None, {**head, "choices": [], "usage": _USAGE}
    yield None, "[DONE]"


def error(refusal: Refuse) -> tuple[int, dict[str, Any]]:
    status, code, message = ERRORS[refusal.complaint]
    return status, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
