"""Text of programs cannot act on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sandbox.redact import Redactor, plain_text


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


@pytest.mark.parametrize("size", [1, 3, 8, 64])
def test_secrets_are_masked_however_they_are_cut(size: int) -> None:
    """Every occurrence, the longest value first, also split between pieces; short values are left alone."""
    text = b"a secret-key b secret-key-longer c secret-ke d key secret-key"
    redactor = Redactor(["secret-key", "secret-key-longer", "key"])
    shown = b"".join(redactor.feed(text[at : at + size]) for at in range(0, len(text), size)) + redactor.rest()
    assert shown == b"a ********** b ***************** c secret-ke d key **********"


def test_without_secrets_nothing_is_held_back() -> None:
    """Output arrives as it is written."""
    redactor = Redactor([])
    assert (redactor.feed(b"abc"), redactor.rest()) == (b"abc", b"")
