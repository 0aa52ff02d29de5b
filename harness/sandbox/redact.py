"""Text of programs made safe to show: escapes and control characters can move a cursor, hide text or set a title."""

from __future__ import annotations

import re

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
