"""Output of programs made safe to keep and to show: secrets are masked; escapes could move a cursor or hide text."""

from __future__ import annotations

import re
from collections.abc import Iterable

# A shorter value is in half of all texts by chance.
_SHORTEST_SECRET = 8
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # control sequences
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # titles, links and other strings
    r"|\x1b[ -/]*[0-~]",  # two-character escapes
    re.DOTALL | re.MULTILINE,
)
# C0 without tab and newline, DEL, C1, and the marks that reorder or hide text.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def plain_text(raw: bytes | str) -> str:
    """Lines without escapes; every other control character becomes U+FFFD."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    return _CONTROLS.sub("\ufffd", text.replace("\r", "\n"))


class Redactor:
    """Masks values in a stream of bytes, also where a value is split between two pieces."""

    def __init__(self, secrets: Iterable[str]) -> None:
        values = sorted(
            {secret.encode() for secret in secrets if len(secret) >= _SHORTEST_SECRET}, key=len, reverse=True
        )
        self._pattern = re.compile(b"|".join(re.escape(value) for value in values)) if values else None
        self._held_back = max((len(value) for value in values), default=1) - 1
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What can be shown by now; the end is held back while a value could still begin in it."""
        if self._pattern is None:
            return data
        held = self._held + data
        cut = max(0, len(held) - self._held_back)
        for found in self._pattern.finditer(held):
            if found.start() < cut < found.end():
                cut = found.end()
        self._held = held[cut:]
        return self._pattern.sub(_mask, held[:cut])

    def rest(self) -> bytes:
        """What was held back to the end."""
        held, self._held = self._held, b""
        return held if self._pattern is None else self._pattern.sub(_mask, held)


def _mask(found: re.Match[bytes]) -> bytes:
    """As long as what it hides: offsets in a transcript stay what they were."""
    return b"*" * len(found[0])
