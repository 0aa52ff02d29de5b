"""What is printed: one JSON envelope or plain lines, never control characters that came from outside."""

from __future__ import annotations

import json
import sys
from typing import Any

from harness.errors import OrchestrixError


def emit(data: dict[str, Any]) -> None:
    """The success envelope on stdout."""
    sys.stdout.write(json.dumps({"schema": 1, "ok": True, "data": data}, ensure_ascii=False) + "\n")


def failure(error: OrchestrixError, *, as_json: bool, data: dict[str, Any] | None = None) -> None:
    """One line on stderr, and the error envelope on stdout where a machine reads."""
    if as_json:
        body: dict[str, Any] = {"schema": 1, "ok": False, "error": error.as_dict()}
        if data is not None:
            body["data"] = data
        sys.stdout.write(json.dumps(body, ensure_ascii=False) + "\n")
        sys.stdout.flush()
        return
    hint = f" ({error.hint})" if error.hint else ""
    sys.stderr.write(clean(f"orchestrix: {error.message}{hint}") + "\n")


def line(text: str = "") -> None:
    """One line of data on stdout."""
    sys.stdout.write(clean(text) + "\n")


def say(text: str) -> None:
    """One line of progress on stderr."""
    sys.stderr.write(clean(text) + "\n")


def clean(text: str) -> str:
    """Text with everything that could move a terminal's cursor shown instead of obeyed."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else _shown(char) for char in text)


def _shown(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
