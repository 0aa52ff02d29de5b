"""OpenAI Responses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from harness.agents.conformance.turns import INPUT_TOKENS, OUTPUT_TOKENS, Ask, Reply, Text, Tool
from harness.agents.conformance.wires import chat
from harness.agents.conformance.wires.wire import Event, words

_RESULTS = {"function_call_output", "custom_tool_call_output", "local_shell_call_output"}
error = chat.error


def ask(body: Mapping[str, Any], model: str) -> Ask:
    system = [str(body.get("instructions") or "")]
    users: list[str] = []
    results: list[str] = []
    given = body.get("input", [])
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        text = words(item.get("content"), "input_text")
        if item.get("type") in _RESULTS:
            results.append(str(item.get("output", "")))
        elif item.get("role") in {"system", "developer"}:
            system.append(text)
        elif item.get("role") == "user":
            users.append(text)
            results = []
    return Ask(
        model=body.get("model", model),
        stream=bool(body.get("stream")),
        system="\n".join(system),
        users=tuple(users),
        results=tuple(results),
        tools=tuple(_tools(body)),
    )


def _tools(body: Mapping[str, Any]) -> Iterator[Tool]:
    for tool in body.get("tools") or ():
        if tool.get("type") == "function":
            yield Tool.from_schema(tool["name"], tool.get("parameters"))
        elif tool.get("type") == "custom":
            yield Tool(tool["name"], free_form=True)


def _item(asked: Ask, reply: Reply) -> dict[str, Any]:
    if isinstance(reply, Text):
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        return {
            "type": "message",
            "id": f"msg_{asked.earlier}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
    call = {"call_id": f"call_{asked.earlier}", "name": reply.name, "status": "completed"}
    if reply.free_form is not None:
        return {"type": "custom_tool_call", "id": f"ctc_{asked.earlier}", "input": reply.free_form, **call}
    arguments = json.dumps(dict(reply.arguments))
    return {"type": "function_call", "id": f"fc_{asked.earlier}", "arguments": arguments, **call}


def _response(asked: Ask, output: list[dict[str, Any]], status: str) -> dict[str, Any]:
    usage = {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    return {
        "id": f"resp_{asked.earlier}",
        "object": "response",
        "created_at": 0,
        "model": asked.model,
        "status": status,
        "output": output,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage if status == "completed" else None,
    }


def whole(asked: Ask, reply: Reply) -> dict[str, Any]:
    return _response(asked, [_item(asked, reply)], "completed")


def events(asked: Ask, reply: Reply) -> Iterator[Event]:
    item = _item(asked, reply)
    rows: list[tuple[str, dict[str, Any]]] = [("response.created", {"response": _response(asked, [], "in_progress")})]
    place = {"output_index": 0, "item_id": item["id"]}
    if isinstance(reply, Text):
        empty = {"type": "output_text", "text": "", "annotations": []}
        rows += [
            ("response.output_item.added", {"output_index": 0, "item": {**item, "content": []}}),
            ("response.content_part.added", {**place, "content_index": 0, "part": empty}),
            ("response.output_text.delta", {**place, "content_index": 0, "delta": reply.text}),
            ("response.output_text.done", {**place, "content_index": 0, "text": reply.text}),
            ("response.content_part.done", {**place, "content_index": 0, "part": item["content"][0]}),
        ]
    elif reply.free_form is not None:
        rows.append(("response.output_item.added", {"output_index": 0, "item": {**item, "input": ""}}))
    else:
        rows += [
            ("response.output_item.added", {"output_index": 0, "item": {**item, "arguments": ""}}),
            ("response.function_call_arguments.delta", {**place, "delta": item["arguments"]}),
            ("response.function_call_arguments.done", {**place, "arguments": item["arguments"], "name": reply.name}),
        ]
    rows += [
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": whole(asked, reply)}),
    ]
    for number, (name, data) in enumerate(rows):
        yield name, {"type": name, "sequence_number": number, **data}
