"""What is printed: one JSON envelope or plain lines, never control characters that came from outside."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from harness.errors import OrchestrixError
from harness.model.visible import visible

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


_envelopes = 0


def begin() -> None:
    """A new call: no envelope has been printed yet."""
    global _envelopes  # noqa: PLW0603 - one stdout, one count
    _envelopes = 0


def told_by_envelope() -> bool:
    """Whether this call has printed its one envelope: what goes wrong after it is told on stderr."""
    return bool(_envelopes)


def _count_envelope() -> None:
    global _envelopes  # noqa: PLW0603 - as above
    _envelopes += 1


def emit(data: dict[str, Any]) -> None:
    """The success envelope on stdout."""
    sys.stdout.write(as_json_text({"schema": 1, "ok": True, "data": data}) + "\n")
    _count_envelope()


def failure(error: OrchestrixError, *, as_json: bool, data: dict[str, Any] | None = None) -> None:
    """One line on stderr, and the error envelope on stdout where a machine reads."""
    if as_json:
        body: dict[str, Any] = {"schema": 1, "ok": False, "error": error.as_dict()}
        if data is not None:
            body["data"] = data
        sys.stdout.write(as_json_text(body) + "\n")
        _count_envelope()
        sys.stdout.flush()
        return
    hint = f" ({error.hint})" if error.hint else ""
    sys.stderr.write(visible(f"orchestrix: {error.message}{hint}") + "\n")


def line(text: str = "") -> None:
    """One line of data on stdout."""
    sys.stdout.write(visible(text) + "\n")


def say(text: str) -> None:
    """One line of progress on stderr, after what stdout was told before: both may go to one file."""
    sys.stdout.flush()
    sys.stderr.write(visible(text) + "\n")


def as_json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON for a terminal, too: letters as they are, everything that does not print as an escape of JSON's own."""
    utf8 = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not utf8, indent=indent)
    return _NOT_ASCII.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)
