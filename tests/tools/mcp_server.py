"""A small MCP server without a library, so that it can also misbehave: the first argument says how."""

from __future__ import annotations

import json
import sys

HOW = sys.argv[1] if len(sys.argv) > 1 else "well"
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOLS = [
    {"name": "double", "description": "Doubles a number.", "inputSchema": NUMBER, "outputSchema": NUMBER},
    {"name": "shout", "description": "Shouts.", "inputSchema": {"type": "object"}},
    {"name": "fail", "inputSchema": {"type": "object"}},
]
calls: list[str] = []


def result(method: str, params: dict) -> dict | None:
    if method == "initialize":
        info = {"name": "test", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    name, arguments = params["name"], params.get("arguments") or {}
    calls.append(name)
    if name == "double":
        wrong = HOW == "lies" or (HOW == "lies-once" and len(calls) == 1)
        value = {"n": "many"} if wrong else {"n": 2 * arguments["n"]}
        return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}
    if name == "fail":
        return {"content": [{"type": "text", "text": "it broke"}], "isError": True}
    return {"content": [{"type": "text", "text": "A" * 1_000_000}]}


if HOW == "dies":
    sys.exit(3)
if HOW == "chatters":
    sys.stdout.write("this is no message\n")
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        said = result(message["method"], message.get("params") or {})
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": said}
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()
