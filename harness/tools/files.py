"""Tools that change single files."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from harness.errors import ToolFailed
from harness.model import limits
from harness.model.plan import DeleteFile, EditFile, MoveFile, Word, WriteFile
from harness.tools.inside import Inside


class ReadFile(BaseModel):
    """Read a text file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    path: Word


def read_file(arguments: ReadFile, inside: Inside) -> str:
    """The text, cut at a limit that is named in the answer."""
    content = inside.read(arguments.path, limits.TOOL_READ_BYTES + 1).content
    text = content[: limits.TOOL_READ_BYTES].decode("utf-8", "replace")
    if len(content) > limits.TOOL_READ_BYTES:
        text += f"\n[... cut after {limits.TOOL_READ_BYTES} bytes ...]"
    return text


def write_file(arguments: WriteFile, inside: Inside) -> str:
    """Creates or replaces; a file that was executable stays so."""
    content = arguments.content.encode()
    inside.write(arguments.path, content, executable=True if arguments.executable else None)
    return f"wrote {len(content)} bytes to {arguments.path}"


def edit_file(arguments: EditFile, inside: Inside) -> str:
    """Replaces text that stands in the file exactly once."""
    path = arguments.path
    if inside.is_link(path):
        raise ToolFailed(f"{path} is a symbolic link", hint="edit the file that it points to", path=path)
    content = inside.read(path).content
    old = arguments.old.encode()
    first = content.find(old)
    if first < 0:
        raise ToolFailed(
            f"the text to replace is not in {path}", hint="it must match exactly, spaces included", path=path
        )
    if content.find(old, first + 1) >= 0:
        raise ToolFailed(
            f"the text to replace is in {path} more than once", hint="give more of its surroundings", path=path
        )
    new = arguments.new.encode()
    inside.write(path, content[:first] + new + content[first + len(old) :])
    return f"edited {path}"


def delete_file(arguments: DeleteFile, inside: Inside) -> str:
    inside.remove(arguments.path)
    return f"deleted {arguments.path}"


def move_file(arguments: MoveFile, inside: Inside) -> str:
    inside.move(arguments.source, arguments.target)
    return f"moved {arguments.source} to {arguments.target}"
