"""Text from outside as a block of a prompt that it cannot end."""

from __future__ import annotations

import re

_TICKS = re.compile(r"`+")


def fenced(text: str) -> str:
    """The text between two fences, each longer than any row of backticks in it."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"
