"""Text from outside as it may be shown: what would move a terminal's cursor is spelled out, not obeyed."""

from __future__ import annotations


def visible(text: str) -> str:
    """The text with every character that does not print, but line breaks and tabs, written as an escape."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else _spelled(char) for char in text)


def _spelled(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
