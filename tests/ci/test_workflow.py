"""Commands are encoded; everything else is text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.ci import workflow
from tests.ci.stories import obeyed

_HOSTILE = st.text(alphabet=st.sampled_from([*'::##[]vso \t\r\n\v\x85\u2028\\"a', "\u00a0"]), max_size=40)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("endgroup",), "::endgroup::"),
        (("group", "50% of\r\nit: a, b"), "::group::50%25 of%0D%0Ait: a, b"),
        (
            ("error", "m", {"file": "a,b:c%.py", "line": 3, "title": "x\ny"}),
            "::error file=a%2Cb%3Ac%25.py,line=3,title=x%0Ay::m",
        ),
        (("error", "m", {"file": "", "line": None}), "::error::m"),
        (("group", "##[error]x"), "::group::##\\u005berror]x"),
    ],
)
def test_a_value_cannot_leave_its_place_in_a_command(arguments, line):
    """Data and properties are percent-encoded as the runner decodes them; empty properties are left out."""
    assert workflow.command(*arguments) == line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", "\\u003a:error::x"),
        (" \t ::error::x", " \t \\u003a:error::x"),
        ("a\n::b\r::c", "a\n\\u003a:b\r\\u003a:c"),
        ("\n\n::x", "\n\n\\u003a:x"),
        ("see ##[add-path]/x", "see ##\\u005badd-path]/x"),
        ("##vso[task.setvariable]x ##teamcity[y", "##vso\\u005btask.setvariable]x ##teamcity\\u005by"),
        ("std::vector # [1] ##", "std::vector # [1] ##"),
    ],
)
def test_text_that_looks_like_a_command_is_shown_instead_of_obeyed(text, shown):
    """Only the decisive character changes, and ordinary text does not."""
    assert workflow.neutral(text) == shown


@given(_HOSTILE)
def test_no_text_is_ever_obeyed(text):
    """Whatever the mix of separators, spaces and markers."""
    assert obeyed(workflow.neutral(text)) == []


@given(st.recursive(_HOSTILE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_HOSTILE, inner, max_size=3)))
def test_json_means_the_same_afterwards(value):
    """The envelope that --json prints passes the guard unharmed."""
    assert json.loads(workflow.neutral(json.dumps(value, ensure_ascii=False))) == value
