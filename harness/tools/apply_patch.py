"""Applies a unified diff: all of it or nothing, where it says or where its context stands exactly once."""

from __future__ import annotations

import contextlib

from harness.errors import OrchestrixError, ToolFailed
from harness.model.plan import ApplyPatch
from harness.tools import patch
from harness.tools.inside import File, Inside
from harness.tools.patch import FilePatch, Hunk


def apply_patch(arguments: ApplyPatch, inside: Inside) -> str:
    """Raises ToolFailed when any part does not apply; then no file has changed."""
    patches = patch.parse(arguments.patch.encode())
    after = _Planned(inside)
    for each in patches:
        after.apply(each)
    after.carry_out()
    return f"patched {', '.join(each.new or each.old or '' for each in patches)}"


class _Planned:
    """The workspace as it will be: None is a file that will be gone."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._files: dict[str, File | None] = {}

    def apply(self, change: FilePatch) -> None:
        file = File(b"", executable=False) if change.old is None else self._read(change.old)
        content = _patched(file.content, change)
        if change.old is not None and change.old != change.new and not change.copies:
            self._files[change.old] = None
        if change.new is None:
            if content:
                raise ToolFailed(f"{change.old} is to be deleted, but the patch leaves some of it", path=change.old)
            return
        if change.new != change.old and self._exists(change.new):
            raise ToolFailed(f"{change.new} exists already", path=change.new)
        self._files[change.new] = File(content, file.executable if change.executable is None else change.executable)

    def _exists(self, path: str) -> bool:
        return self._files[path] is not None if path in self._files else self._inside.exists(path)

    def _read(self, path: str) -> File:
        file = self._files.get(path)
        if file is not None:
            return file
        if path in self._files or not self._inside.exists(path):
            raise ToolFailed(f"{path} does not exist", path=path)
        if self._inside.is_link(path):
            raise ToolFailed(f"{path} is a symbolic link", hint="patch the file that it points to", path=path)
        return self._inside.read(path)

    def carry_out(self) -> None:
        """Deletions first, so that a file may make room for a directory; a failure puts everything back."""
        before = {path: self._inside.read(path) if self._inside.exists(path) else None for path in self._files}
        try:
            self._write(self._files)
        except OrchestrixError:
            with contextlib.suppress(OrchestrixError):
                self._write(before)
            raise

    def _write(self, files: dict[str, File | None]) -> None:
        for path, file in files.items():
            if file is None and self._inside.exists(path):
                self._inside.remove(path)
                self._inside.remove_empty_above(path)
        for path, file in files.items():
            if file is not None:
                self._inside.write(path, file.content, executable=file.executable)


def _patched(content: bytes, change: FilePatch) -> bytes:
    lines = _split(content)
    done, shift = 0, 0
    for number, hunk in enumerate(change.hunks, 1):
        place = _place(lines, hunk, max(hunk.start - 1, 0) + shift, done)
        if place is None:
            raise ToolFailed(
                f"hunk {number} of {change.old or change.new} does not apply",
                hint="its context must stand in the file exactly as in the patch; read the file again",
                path=change.old or change.new,
            )
        lines[place : place + len(hunk.before)] = hunk.after
        shift = place - max(hunk.start - 1, 0) + len(hunk.after) - len(hunk.before)
        done = place + len(hunk.after)
    return b"".join(lines)


def _split(content: bytes) -> list[bytes]:
    """Lines as a diff counts them: only a line feed ends one."""
    pieces = content.split(b"\n")
    last = pieces.pop()
    return [piece + b"\n" for piece in pieces] + ([last] if last else [])


def _place(lines: list[bytes], hunk: Hunk, expected: int, done: int) -> int | None:
    """Where the hunk fits: at its line, else at the only other place; less context at an end means the file's end."""
    size = len(hunk.before)

    def fits(place: int) -> bool:
        if hunk.start <= 1 and place != 0:
            return False
        if hunk.trailing == 0 and place + size != len(lines):
            return False
        return place >= done and tuple(lines[place : place + size]) == hunk.before

    if fits(expected):
        return expected
    others = [place for place in range(done, len(lines) - size + 1) if fits(place)]
    return others[0] if len(others) == 1 else None
