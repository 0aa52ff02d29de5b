"""Text of programs cannot act on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sandbox.redact import plain_text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[31mred\x1b[0m\n", "red\n"),
        (b"\x1b]0;title\x07after", "after"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"50%\r100%\r\nend", "50%\n100%\nend"),
        (b"a\x00b\x07c\xff", "a\ufffdb\ufffdc\ufffd"),
        ("\u202eevil\u200b".encode(), "\ufffdevil\ufffd"),
        ("tab\tüñí\n".encode(), "tab\tüñí\n"),
    ],
)
def test_escapes_go_and_words_stay(raw, shown) -> None:
    """Colours, titles and links vanish; stray controls become visible marks."""
    assert plain_text(raw) == shown


@given(st.binary(max_size=200))
def test_no_control_character_is_left(raw) -> None:
    """Whatever comes in, only tab and newline remain of the controls."""
    assert not [char for char in plain_text(raw) if char not in "\n\t" and (ord(char) < 32 or 127 <= ord(char) < 160)]
