"""Gemini generateContent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.agents.conformance.turns import INPUT_TOKENS, OUTPUT_TOKENS, Ask, Refuse, Reply, Text, Tool
from harness.agents.conformance.wires.wire import Event

_ERRORS = {
    "rate_limited": (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    "auth_failed": (401, "UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
    "context_full": (
        400,
        "INVALID_ARGUMENT",
        "The input token count (1250000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    "overloaded": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
}


def ask(body: Mapping[str, Any], model: str) -> Ask:
    users: list[str] = []
    results: list[str] = []
    for content in body.get("contents", []):
        if content.get("role", "user") != "user":
            continue
        answers = [str(part["functionResponse"]) for part in content.get("parts", ()) if "functionResponse" in part]
        if answers:
            results += answers
        else:
            users.append(_text(content))
            results = []
    declared = [found for tool in body.get("tools") or () for found in tool.get("functionDeclarations", ())]
    return Ask(
        model=model,
        stream=False,
        system=_text(body.get("systemInstruction") or {}),
        users=tuple(users),
        results=tuple(results),
        tools=tuple(
            Tool.from_schema(found["name"], found.get("parametersJsonSchema") or found.get("parameters"))
            for found in declared
        ),
    )


def _text(content: Any) -> str:
    parts = content.get("parts", ()) if isinstance(content, dict) else ()
    return "\n".join(str(part["text"]) for part in parts if "text" in part)


def whole(asked: Ask, reply: Reply) -> dict[str, Any]:
    part: dict[str, Any] = (
        {"text": reply.text}
        if isinstance(reply, Text)
        else {"functionCall": {"name": reply.name, "args": dict(reply.arguments)}}
    )
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return {
        "candidates": [candidate],
        "modelVersion": asked.model,
        "responseId": f"response-{asked.earlier}",
        "usageMetadata": {
            "promptTokenCount": INPUT_TOKENS,
            "candidatesTokenCount": OUTPUT_TOKENS,
            "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


def events(asked: Ask, reply: Reply) -> Iterator[Event]:
    yield None, whole(asked, reply)


def error(refusal: Refuse) -> tuple[int, dict[str, Any]]:
    status, name, message = _ERRORS[refusal.complaint]
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{refusal.retry_after}s"}
    details = [delay] if refusal.retry_after is not None else []
    return status, {"error": {"code": status, "message": message, "status": name, "details": details}}
