"""A fence that its text cannot end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.model.fence import fenced


def test_the_fence_is_longer_than_any_in_the_text() -> None:
    """Three backticks, or one more than the longest row."""
    assert fenced("plain\n") == "```text\nplain\n```"
    assert fenced("a ```` b") == "`````text\na ```` b\n`````"


@given(st.text(alphabet="`\nab"))
def test_no_text_ends_its_fence(text) -> None:
    """The closing line appears once."""
    first, *body, last = fenced(text).split("\n")
    assert first == f"{last}text"
    assert last not in "\n".join(body)
