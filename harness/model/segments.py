"""One segment of a glob: what it matches, and whether two of them can match the same name. Never exponential."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Any, TypeVar

from harness.model.late import dataclass

_WILD = re.compile(r"[*?]|\[[!^]?.[^\]]*\]", re.DOTALL)
_MEMBER = re.compile(r".-.|.", re.DOTALL)
_ASCII = 128
_BEYOND_ASCII = 1 << _ASCII
_CACHED = 1 << 16
_END: Any = object()

P = TypeVar("P")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class CharSet:
    """What one position accepts: a literal character, `?` or `[...]`."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def accepts(self, char: str) -> bool:
        return any(low <= char <= high for low, high in self.ranges) != self.negated

    @cached_property
    def mask(self) -> int:
        """A bit for each ASCII character that it accepts, without case, and one bit for all others together."""
        foreign = self.negated or any(high >= chr(_ASCII) for _, high in self.ranges)
        mask = _BEYOND_ASCII if foreign else 0
        for code in range(_ASCII):
            if self.accepts(chr(code)):
                mask |= 1 << ord(chr(code).lower())
        return mask

    @cached_property
    def literal(self) -> str:
        """The one character that it accepts, or nothing."""
        if self.negated or len(self.ranges) != 1:
            return ""
        low, high = self.ranges[0]
        return low if low == high else ""

    def meets(self, other: CharSet) -> bool:
        """Whether both may accept one character, regardless of case; in doubt, yes."""
        shared = self.mask & other.mask
        if shared == _BEYOND_ASCII and self.literal and other.literal:
            return self.literal == other.literal
        return shared != 0


Token = CharSet | None  # None is `*`
_ANY = CharSet((), negated=True)


def greedy(pattern: Sequence[P | None], items: Sequence[T], accepts: Callable[[P, T], bool]) -> bool:
    """Whether a pattern, in which None is any number of items, matches all items; at most len x len comparisons.

    Taking the leftmost place for each piece between two stars is enough, so only the last star is ever retried.
    """
    at = item = resume = 0
    star = -1
    while item < len(items):
        token = pattern[at] if at < len(pattern) else _END
        if token is None:
            star, resume = at, item
            at += 1
        elif token is not _END and accepts(token, items[item]):
            at, item = at + 1, item + 1
        elif star >= 0:
            resume += 1
            at, item = star + 1, resume
        else:
            return False
    return all(token is None for token in pattern[at:])


class Segment:
    """A parsed segment; a name that is the segment's own text always matches, so that `[id].tsx` works.

    A `plain` one is ASCII without wildcards: two of those meet exactly if their keys are equal.
    """

    __slots__ = ("_spellings", "_tokens", "head", "key", "plain", "tail", "text", "wild")

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = _parse(text, str)
        self.wild = _WILD.search(text) is not None
        self.plain = not self.wild and text.isascii()
        self.key = text.lower() if self.plain else text
        self.head = _ascii_run(self._tokens)
        self.tail = _ascii_run(self._tokens[::-1])[::-1]
        spellings = {self._tokens, tuple(map(_literal, text))} if "[" in text else {self._tokens}
        if not text.isascii():
            spellings |= {_parse(text, _fold), *([tuple(map(_literal, _fold(text)))] if "[" in text else [])}
        self._spellings = tuple(spellings)

    def matches(self, name: str) -> bool:
        return name == self.text or (self.wild and greedy(self._tokens, name, CharSet.accepts))

    def meets(self, other: Segment) -> bool:
        """Whether one name may match both, also one that differs in case or Unicode form only; in doubt, yes."""
        return any(_meet(mine, theirs) for mine in self._spellings for theirs in other._spellings)


@lru_cache(maxsize=_CACHED)
def parse(text: str) -> Segment:
    return Segment(text)


def _parse(text: str, spell: Callable[[str], str]) -> tuple[Token, ...]:
    tokens: list[Token] = []
    end = 0
    for wild in _WILD.finditer(text):
        tokens += map(_literal, spell(text[end : wild.start()]))
        end = wild.end()
        if wild[0] != "*":
            tokens.append(_char_set(wild[0]))
        elif not tokens or tokens[-1] is not None:
            tokens.append(None)
    return (*tokens, *map(_literal, spell(text[end:])))


def _char_set(text: str) -> CharSet:
    if text == "?":
        return _ANY
    body = text[1:-1]
    negated = body[0] in "!^" and len(body) > 1
    return CharSet(tuple((part[0], part[-1]) for part in _MEMBER.findall(body[negated:])), negated)


@lru_cache(maxsize=_CACHED)
def _literal(char: str) -> CharSet:
    return CharSet(((char, char),))


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _ascii_run(tokens: Sequence[Token]) -> str:
    """The literal text at the start, in lower case; it ends where spellings of one name may begin to differ."""
    run = takewhile(lambda token: token is not None and token.literal != "" and token.literal.isascii(), tokens)
    return "".join(token.literal for token in run if token is not None).lower()


def _meet(one: Sequence[Token], two: Sequence[Token]) -> bool:
    if None not in one:
        one, two = two, one
    if None not in one:
        return len(one) == len(two) and _aligned(one, two)
    if None not in two:
        return greedy(one, two, _sets_meet)
    # Both have a star: what stands between the outermost stars can follow one another, so only the ends decide.
    return _aligned(one, two) and _aligned(one[::-1], two[::-1])


def _sets_meet(one: CharSet, two: Token) -> bool:
    return two is not None and one.meets(two)


def _aligned(one: Sequence[Token], two: Sequence[Token]) -> bool:
    """Whether the pieces before the first star agree as far as both reach."""
    for left, right in zip(one, two, strict=False):
        if left is None or right is None:
            return True
        if not left.meets(right):
            return False
    return True
