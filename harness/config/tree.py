"""A document as plain data, built from a flat stream of tokens, with the place of every value and key.

Nothing here recurses, so nesting cannot exhaust the stack; depth, aliases and the expanded size are bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any, Literal, NamedTuple

from harness.model import limits
from harness.model.late import dataclass

Path = tuple[str | int, ...]


class Place(NamedTuple):
    """Line and column, both from 1."""

    line: int
    column: int


class Token(NamedTuple):
    """One piece of a document; `value` is a scalar, or the name of an alias."""

    kind: Literal["map", "list", "scalar", "alias", "end"]
    place: Place
    value: Any = None
    anchor: str | None = None


class Fault(Exception):
    """The document cannot be read beyond this place."""

    def __init__(self, place: Place, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.place, self.message, self.suggestion = place, message, suggestion


@dataclass
class Tree:
    """`faults` are those after which reading could go on."""

    data: Any = None
    faults: list[Fault] = field(default_factory=list)
    _values: dict[Path, Place] = field(default_factory=dict)
    _keys: dict[Path, Place] = field(default_factory=dict)

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Where a value (or its key) stands, or the nearest thing around it."""
        if key and path in self._keys:
            return self._keys[path]
        while path and path not in self._values:
            path = path[:-1]
        return self._values.get(path, Place(1, 1))


@dataclass
class _Open:
    """A container that has not ended; `key` is the key whose value comes next."""

    data: dict[str, Any] | list[Any]
    path: Path
    anchor: str | None
    size: int = 1
    key: str | None = None
    discard: bool = False
    is_key: bool = False


def build(tokens: Iterable[Token]) -> Tree:
    """The tree of one document; raises Fault where reading must stop."""
    builder = _Builder()
    for token in tokens:
        builder.take(token)
    return builder.tree


class _Builder:
    def __init__(self) -> None:
        self.tree = Tree()
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._aliases = 0
        self._total = 0

    def take(self, token: Token) -> None:
        if token.kind == "end":
            self._close()
        elif self._wants_key():
            self._key(token)
        elif token.kind == "alias":
            self._place(token.place)
            data, size = self._resolve(token)
            self._attach(data, size, token.place)
        elif token.kind == "scalar":
            self._place(token.place)
            if token.anchor:
                self._anchors[token.anchor] = (token.value, 1)
            self._attach(token.value, 1, token.place)
        else:
            self._open(token, is_key=False)

    def _wants_key(self) -> bool:
        top = self._stack[-1] if self._stack else None
        return top is not None and isinstance(top.data, dict) and top.key is None and not top.discard

    def _key(self, token: Token) -> None:
        top = self._stack[-1]
        if token.kind in {"map", "list"}:
            self._fault(token.place, "a key must be text", "write a plain word before the colon")
            self._open(token, is_key=True)
            return
        name = token.value
        if token.kind == "alias" or not isinstance(name, str):
            shown = "an alias" if token.kind == "alias" else str(name)
            self._fault(token.place, f"a key must be text, not {shown}", f'write it in quotes: "{name}"')
            top.discard = True
        elif name in top.data:
            first = self.tree._keys[(*top.path, name)].line  # noqa: SLF001 - the builder of this tree
            self._fault(token.place, f"{name!r:.80} is given twice; the first is on line {first}", "keep one of them")
            top.discard = True
        else:
            top.key = name
            self.tree._keys[(*top.path, name)] = token.place  # noqa: SLF001 - as above

    def _open(self, token: Token, *, is_key: bool) -> None:
        if len(self._stack) >= limits.PLAN_DEPTH:
            raise Fault(token.place, f"is nested deeper than {limits.PLAN_DEPTH} levels", "a plan needs about five")
        path = () if is_key else self._place(token.place)
        data: dict[str, Any] | list[Any] = {} if token.kind == "map" else []
        self._count(1, token.place)
        self._stack.append(_Open(data, path, token.anchor, is_key=is_key))

    def _close(self) -> None:
        done = self._stack.pop()
        if done.anchor:
            self._anchors[done.anchor] = (done.data, done.size)
        if done.is_key:
            self._stack[-1].discard = True
        else:
            self._attach(done.data, done.size, None)

    def _attach(self, data: Any, size: int, counted_at: Place | None) -> None:
        """Gives a finished value to the container around it; a container's own size was counted while it was read."""
        if counted_at is not None:
            self._count(size, counted_at)
        if not self._stack:
            self.tree.data = data
            return
        top = self._stack[-1]
        top.size += size
        if isinstance(top.data, list):
            top.data.append(data)
        elif top.key is not None:
            top.data[top.key] = data
        top.key, top.discard = None, False

    def _place(self, place: Place) -> Path:
        """Remembers where the next value stands."""
        path: Path = ()
        if self._stack:
            top = self._stack[-1]
            last: str | int = len(top.data) if isinstance(top.data, list) else top.key or ""
            path = (*top.path, last)
        self.tree._values.setdefault(path, place)  # noqa: SLF001 - the builder of this tree
        return path

    def _resolve(self, token: Token) -> tuple[Any, int]:
        self._aliases += 1
        if self._aliases > limits.PLAN_ALIASES:
            raise Fault(token.place, f"has more than {limits.PLAN_ALIASES} aliases", "write the values out")
        if token.value not in self._anchors:
            raise Fault(token.place, f"alias *{token.value} names nothing that ended before it", "write the value out")
        return self._anchors[token.value]

    def _count(self, size: int, place: Place) -> None:
        self._total += size
        if self._total > limits.PLAN_NODES:
            raise Fault(place, f"has more than {limits.PLAN_NODES} values, aliases included", "split the plan")

    def _fault(self, place: Place, message: str, suggestion: str) -> None:
        self.tree.faults.append(Fault(place, message, suggestion))


def number(text: str, place: Place) -> float:
    """A decimal number; raises Fault when it is too large."""
    value = float(text)
    if value in {float("inf"), float("-inf")}:
        raise Fault(place, f"{text[:20]} is too large a number", "write a smaller one, or text in quotes")
    return value
