"""The tool that shows what is in a directory."""

from __future__ import annotations

from harness.model.plan import Word
from harness.tools.inside import Inside
from harness.tools.tool import Arguments, listed


class ListDir(Arguments):
    path: Word = "."


def list_dir(arguments: ListDir, inside: Inside) -> str:
    """Names in order, directories with a slash, links with an @."""
    return listed([f"{name}{mark}" for name, mark in inside.entries(arguments.path)], "(empty)")
