"""The tool that shows what is in a directory."""

from __future__ import annotations

from harness.model import limits
from harness.model.plan import Word
from harness.tools.inside import Inside
from harness.tools.tool import Arguments


class ListDir(Arguments):
    path: Word = "."


def list_dir(arguments: ListDir, inside: Inside) -> str:
    """Names in order, directories with a slash, links with an @; cut at a limit that is named in the answer."""
    entries = inside.entries(arguments.path)
    shown = [f"{name}{mark}" for name, mark in entries[: limits.TOOL_ENTRIES]]
    if len(entries) > limits.TOOL_ENTRIES:
        shown.append(f"[... {len(entries) - limits.TOOL_ENTRIES} more ...]")
    return "\n".join(shown) or "(empty)"
