"""Reads a unified diff, as `git diff` or `diff -u` write it. Pure: text in, values out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

from harness.errors import ToolFailed
from harness.model.late import dataclass

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_MODES = {b"100644": False, b"100755": True}
_NOTHING = "/dev/null"


@dataclass(frozen=True, slots=True)
class Hunk:
    """A change of one place; lines carry their own line ends, so that a missing last one is exact."""

    start: int
    before: tuple[bytes, ...]
    after: tuple[bytes, ...]
    trailing: int


@dataclass(frozen=True, slots=True)
class FilePatch:
    """All changes of one file; `old` None creates it, `new` None deletes it, different names move or copy it."""

    old: str | None
    new: str | None
    hunks: tuple[Hunk, ...] = ()
    executable: bool | None = None
    copies: bool = False


@dataclass(slots=True)
class _Header:
    """What the lines before the first hunk say."""

    old: str | None = None
    new: str | None = None
    created: bool = False
    deleted: bool = False
    executable: bool | None = None
    copies: bool = False
    named: bool = False
    hunks: list[Hunk] = field(default_factory=list)


def parse(text: bytes) -> list[FilePatch]:
    """Every file in the diff; raises ToolFailed for what is damaged, binary, a link or a submodule."""
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    reader = _Reader(lines)
    patches = list(reader.files())
    if not patches:
        raise ToolFailed("the patch holds no change", hint="give a unified diff with file headers and hunks")
    return patches


class _Reader:
    def __init__(self, lines: list[bytes]) -> None:
        self._lines = lines
        self._at = 0

    def files(self) -> Iterator[FilePatch]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(b"diff --git "):
                yield self._git_file(line)
            elif line.startswith(b"--- ") and self._peek(1).startswith(b"+++ "):
                header = _Header()
                self._names(header, git=False)
                yield self._finished(header)
            elif line.startswith(b"@@ -"):
                raise self._bad("a hunk without a file header")
            else:
                self._at += 1

    def _peek(self, ahead: int = 0) -> bytes:
        place = self._at + ahead
        return self._lines[place] if place < len(self._lines) else b""

    def _git_file(self, line: bytes) -> FilePatch:
        header = _Header()
        header.old = header.new = self._same_name(line.removeprefix(b"diff --git "))
        self._at += 1
        while self._at < len(self._lines) and self._extended(header, self._peek()):
            self._at += 1
        if self._peek().startswith(b"--- ") and self._peek(1).startswith(b"+++ "):
            self._names(header, git=True)
        return self._finished(header)

    def _extended(self, header: _Header, line: bytes) -> bool:
        """One line of git's extended header; False when it is none."""
        word, _, rest = line.rpartition(b" ")
        match word:
            case b"old mode":
                self._mode(rest)
            case b"new mode":
                header.executable = self._mode(rest)
            case b"new file mode":
                header.created, header.executable = True, self._mode(rest)
            case b"deleted file mode":
                self._mode(rest)
                header.deleted = True
            case _:
                return self._renaming(header, line)
        return True

    def _renaming(self, header: _Header, line: bytes) -> bool:
        for prefix in (b"rename from ", b"copy from "):
            if line.startswith(prefix):
                header.old, header.named = self._name(line.removeprefix(prefix)), True
                header.copies = prefix.startswith(b"copy")
                return True
        for prefix in (b"rename to ", b"copy to "):
            if line.startswith(prefix):
                header.new, header.named = self._name(line.removeprefix(prefix)), True
                return True
        if line.startswith((b"GIT binary patch", b"Binary files ")):
            raise self._bad("a binary change", hint="write the file with another tool")
        return line.startswith((b"similarity index ", b"dissimilarity index ", b"index "))

    def _mode(self, text: bytes) -> bool:
        if text not in _MODES:
            raise self._bad(f"mode {text.decode('ascii', 'replace')!r:.20}", hint="only regular files can be patched")
        return _MODES[text]

    def _names(self, header: _Header, *, git: bool) -> None:
        """The lines `---` and `+++`."""
        old, new = (self._name(self._peek(ahead)[4:], cut=True) for ahead in (0, 1))
        self._at += 2
        header.created |= old == _NOTHING
        header.deleted |= new == _NOTHING
        if header.named:
            return
        strip = git or (_prefixed(old, "a/") and _prefixed(new, "b/"))
        if old != _NOTHING:
            header.old = old.partition("/")[2] if strip else old
        if new != _NOTHING:
            header.new = new.partition("/")[2] if strip else new

    def _name(self, raw: bytes, *, cut: bool = False) -> str:
        quoted = _QUOTED.fullmatch(raw.rstrip(b"\t"))
        if quoted:
            raw = _ESCAPE.sub(lambda found: _unescaped(found[1]), quoted[1])
        elif cut:
            raw = raw.partition(b"\t")[0]  # `diff -u` writes a time behind a tab
        return (
            raw.removesuffix(b"\r").decode("utf-8", "surrogateescape")
            if cut
            else raw.decode("utf-8", "surrogateescape")
        )

    def _same_name(self, rest: bytes) -> str | None:
        """The name in `a/NAME b/NAME`; None when the two differ, and then other lines tell them."""
        middle = (len(rest) - 1) // 2
        left, right = self._name(rest[:middle]), self._name(rest[middle + 1 :])
        name = left.partition("/")[2]
        return name if rest[middle : middle + 1] == b" " and name == right.partition("/")[2] else None

    def _finished(self, header: _Header) -> FilePatch:
        while self._peek().startswith(b"@@ -"):
            header.hunks.append(self._hunk())
        old = None if header.created else header.old
        new = None if header.deleted else header.new
        if not (old or new) or (old is None and not header.created) or (new is None and not header.deleted):
            raise self._bad("a file without a name")
        return FilePatch(old, new, tuple(header.hunks), header.executable, header.copies)

    def _hunk(self) -> Hunk:
        found = _HUNK.match(self._peek())
        if found is None:
            raise self._bad("a damaged hunk header")
        left = [int(found[2] or 1), int(found[4] or 1)]
        self._at += 1
        body: list[tuple[bytes, bytes]] = []
        while left[0] > 0 or left[1] > 0:
            if self._at >= len(self._lines):
                raise self._bad("the end of the patch inside a hunk")
            line = self._peek()
            sign = line[:1] or b" "  # some mailers strip the blank of an empty context line
            if sign not in {b" ", b"-", b"+", b"\\"}:
                raise self._bad("a line that is no part of its hunk")
            self._take(body, sign, line[1:])
            left[0] -= sign in {b" ", b"-"}
            left[1] -= sign in {b" ", b"+"}
            self._at += 1
        if min(left) < 0:
            raise self._bad("a hunk with more lines than its header says")
        if self._peek().startswith(b"\\"):
            self._take(body, b"\\", b"")
            self._at += 1
        return _assembled(int(found[1]), body)

    @staticmethod
    def _take(body: list[tuple[bytes, bytes]], sign: bytes, text: bytes) -> None:
        if sign != b"\\":
            body.append((sign, text + b"\n"))
        elif body:  # "\ No newline at end of file" speaks of the line before it
            body[-1] = (body[-1][0], body[-1][1].removesuffix(b"\n"))

    def _bad(self, what: str, *, hint: str = "") -> ToolFailed:
        return ToolFailed(f"the patch has {what} (line {self._at + 1})", hint=hint or "give a whole unified diff")


def _prefixed(name: str, prefix: str) -> bool:
    return name == _NOTHING or name.startswith(prefix)


def _unescaped(code: bytes) -> bytes:
    if len(code) == 3:  # noqa: PLR2004 - three octal digits
        return bytes([int(code, 8) & 0xFF])
    return _ESCAPES.get(code, code)


def _assembled(start: int, body: list[tuple[bytes, bytes]]) -> Hunk:
    context = [sign == b" " for sign, _ in body]
    trailing = next((n for n, kept in enumerate(reversed(context)) if not kept), len(context))
    return Hunk(
        start,
        tuple(text for sign, text in body if sign != b"+"),
        tuple(text for sign, text in body if sign != b"-"),
        trailing,
    )
