"""A small agent program for tests: talks to a model by Chat Completions, has three tools, tells lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

_SCHEMAS = {
    "write_file": {"path": {"type": "string"}, "content": {"type": "string"}},
    "read_file": {"path": {"type": "string"}},
    "bash": {"command": {"type": "string"}},
}


def _use(name: str, arguments: dict[str, str], granted: list[str]) -> str:
    if name not in granted and "--careless" not in sys.argv:
        return f"there is no tool {name}"
    if name == "write_file":
        Path(arguments["path"]).write_text(arguments["content"])
        return "written"
    return subprocess.run(arguments["command"], shell=True, capture_output=True, text=True, check=False).stdout


def _ask(messages: list[dict[str, object]], granted: list[str]) -> dict[str, object]:
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": _SCHEMAS[name]}}}
        for name in granted
    ]
    body = json.dumps({"model": "m", "messages": messages, "tools": tools}).encode()
    headers = {"Authorization": f"Bearer {os.environ['ROBOT_KEY']}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{os.environ['ROBOT_URL']}/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    if "--version" in sys.argv:
        _tell("robot 1.2.3")
        return 0
    granted = [name for name in sys.argv[sys.argv.index("--tools") + 1].split(",") if name]
    messages: list[dict[str, object]] = [{"role": "user", "content": sys.stdin.read()}]
    used = {"in": 0, "out": 0}
    while True:
        try:
            answer = _ask(messages, granted)
        except urllib.error.HTTPError as error:
            with error:
                _tell(json.dumps({"type": "error", "text": f"status {error.code}: {error.read().decode()}"}))
            return 0
        used = {
            "in": used["in"] + answer["usage"]["prompt_tokens"],
            "out": used["out"] + answer["usage"]["completion_tokens"],
        }
        message = answer["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            _tell(json.dumps({"type": "result", "text": message["content"], "use": used}))
            return 0
        for call in message["tool_calls"]:
            given = json.loads(call["function"]["arguments"])
            result = _use(call["function"]["name"], given, granted)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


if __name__ == "__main__":
    sys.exit(main())
