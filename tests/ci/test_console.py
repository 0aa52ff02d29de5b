"""Nothing that is printed under guard is obeyed, except what is meant to be."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout

from hypothesis import given
from hypothesis import strategies as st

from harness.ci import console, workflow


@given(st.lists(st.text(alphabet=":# [\na", max_size=6), max_size=12))
def test_lines_are_judged_whole_however_they_are_cut(pieces):
    """Two colons that arrive in two writes are two colons."""
    plain = io.StringIO()
    guard = console.Guarded(plain)
    for piece in pieces:
        guard.write(piece)
        guard.flush()
    guard.finish()
    assert plain.getvalue() == "\n".join(workflow.neutral(line) for line in "".join(pieces).split("\n"))


def test_only_rendered_commands_pass_and_both_streams_are_watched():
    """`obey` is the one way to the runner, and the streams are given back."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        with console.guarded() as (to_out, _to_err):
            sys.stdout.write("::error::from data\n")
            sys.stderr.write("  ::warning::from data")
            to_out.obey([workflow.command("endgroup")])
        sys.stdout.write("after\n")
    assert out.getvalue() == "\\u003a:error::from data\n::endgroup::\nafter\n"
    assert err.getvalue() == "  \\u003a:warning::from data"


def test_a_guarded_stream_is_no_terminal():
    """A CI job has no live display, even when somebody tries it at a desk."""
    assert not console.Guarded(sys.stderr).isatty()
