"""Output as whole lines."""

from __future__ import annotations

import pytest

from harness.model import limits
from harness.sandbox.output import Lines


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_whole_however_they_arrive(size: int) -> None:
    """Each once, without its end; what has no end yet is not shown."""
    text = b"one\ntwo\n\nthree and more\nrest"
    seen: list[bytes] = []
    lines = Lines(lambda line: seen.append(line) or line == b"two")
    found = [lines.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert seen == [b"one", b"two", b"", b"three and more"]
    assert found.count(True) == 1


def test_a_line_beyond_the_limit_is_skipped_whole(monkeypatch) -> None:
    """Memory stays bounded, and the lines after it are seen."""
    monkeypatch.setattr(limits, "WATCHED_LINE_BYTES", 5)
    seen: list[bytes] = []
    lines = Lines(lambda line: bool(seen.append(line)))
    for piece in (b"123", b"456", b"7\n12345\n", b"123456\nok\n"):
        lines.feed(piece)
    assert seen == [b"12345", b"ok"]
