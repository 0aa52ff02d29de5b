"""From what a scripted model wants to do to a call of a tool that the program really offers."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import Any

from harness.agents.conformance.turns import Act, Answer, Ask, Break, Call, Reply, Say, Text, Tool, Use

_TOOLS: dict[Act, tuple[str, ...]] = {
    "write": ("Write", "write", "write_file", "write_to_file", "create_file", "editor"),
    "read": ("Read", "read", "read_file", "read_files"),
    "run": (
        *("Bash", "bash", "shell", "run_shell_command", "exec_command", "shell_command"),
        *("execute_command", "run_commands", "terminal"),
    ),
}
_PATHS = frozenset({"file_path", "filePath", "path", "absolute_path", "filename", "paths", "file_paths"})
_CONTENTS = frozenset({"content", "contents", "text", "file_text", "new_text"})
_COMMANDS = frozenset({"command", "cmd", "commands", "script"})
_PATCH = "apply_patch"
_HERE = re.compile(
    r"(?:working directory|working in the directory|<cwd>)[:\s`\"']{0,4}(/[^\s<>\"'`,)]+)", re.IGNORECASE
)
# A program that takes no plain words for an end says which command ends its work.
_FAREWELL = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_EDIT_BLOCKS = "SEARCH/REPLACE"


def resolve(ask: Ask, turn: Say | Use | Answer | Break) -> Reply:
    """Words, or a call; a program that offers no tool at all gets words in place of a call."""
    if isinstance(turn, Say) and ask.tools and _FAREWELL in ask.everything:
        return _used(ask, Use("run", command=f"echo {_FAREWELL}"))
    if isinstance(turn, Say | Break):
        return Text(turn.text)
    if isinstance(turn, Answer):
        return _answer(ask, turn)
    if turn.tool is not None:
        return _filled(ask, _offered(ask, (turn.tool,)) or Tool(turn.tool, _guessed(turn)), turn)
    if ask.tools:
        return _used(ask, turn)
    return Text(_edit_block(turn) if _EDIT_BLOCKS in ask.everything else "Nothing to do here.")


def _used(ask: Ask, turn: Use) -> Call:
    """The tool that is made for it, a patch, or a shell, whichever is offered."""
    tool = _offered(ask, _TOOLS[turn.act])
    if tool is not None:
        return _filled(ask, tool, turn)
    patch = _offered(ask, (_PATCH,))
    if turn.act == "write" and patch is not None and patch.free_form:
        return Call(_PATCH, {}, _patch(turn))
    shell = _offered(ask, _TOOLS["run"])
    as_command = Use("run", command=turn.as_command)
    return _filled(ask, shell or Tool(_TOOLS["run"][0], _guessed(as_command)), as_command)


def _answer(ask: Ask, turn: Answer) -> Reply:
    tool = _offered(ask, (turn.tool,)) if turn.tool else next((t for t in ask.tools if t.name == "final_result"), None)
    return Call(tool.name, turn.value) if tool else Text(json.dumps(turn.value))


def _offered(ask: Ask, names: tuple[str, ...]) -> Tool | None:
    offered = {tool.name: tool for tool in ask.tools}
    return next((offered[name] for name in names if name in offered), None)


def _guessed(turn: Use) -> dict[str, Any]:
    """The arguments of a tool that is not offered: a model that calls it all the same has no schema either."""
    names = {"run": ("command",), "read": ("file_path",), "write": ("file_path", "content")}[turn.act]
    return {name: {"type": "string"} for name in names}


def _filled(ask: Ask, tool: Tool, turn: Use) -> Call:
    arguments: dict[str, Any] = {}
    for name, schema in tool.properties.items():
        kind = _kind(schema)
        if name in _PATHS:
            arguments[name] = [_absolute(ask, turn.path)] if kind == "array" else _absolute(ask, turn.path)
        elif name in _CONTENTS:
            arguments[name] = turn.content
        elif name in _COMMANDS:
            arguments[name] = _command(name, kind, turn.command)
        elif name in tool.required:
            arguments[name] = _filler(schema, kind, turn)
    return Call(tool.name, arguments)


def _kind(schema: Any) -> str:
    kind = schema.get("type", "string") if isinstance(schema, dict) else "string"
    return str(kind[0] if isinstance(kind, list) else kind).lower()


def _command(name: str, kind: str, command: str) -> str | list[str]:
    if kind != "array":
        return command
    return [command] if name == "commands" else ["sh", "-c", command]


def _filler(schema: dict[str, Any], kind: str, turn: Use) -> Any:
    """Something that a required argument accepts."""
    if schema.get("enum"):
        return schema["enum"][0]
    return {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}.get(
        kind, f"{turn.act} for the step"
    )


def _absolute(ask: Ask, path: str) -> str:
    """Some programs take absolute paths only, and say in their prompt where they are."""
    here = _HERE.search(ask.everything)
    return path if here is None else str(PurePosixPath(here[1].rstrip(".")) / path)


def _patch(turn: Use) -> str:
    lines = "".join(f"+{line}\n" for line in turn.content.splitlines())
    return f"*** Begin Patch\n*** Add File: {turn.path}\n{lines}*** End Patch\n"


def _edit_block(turn: Use) -> str:
    if turn.act != "write":
        return "Nothing to do here."
    return f"{turn.path}\n```\n<<<<<<< SEARCH\n=======\n{turn.content.rstrip()}\n>>>>>>> REPLACE\n```\n"
