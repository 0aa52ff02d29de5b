"""Outputs arrive as they are, and no value brings a second one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.ci import outputs
from harness.ci.result import Result
from harness.errors import UsageError
from tests.ci.stories import mixed, outputs_in


def test_a_run_gives_six_outputs():
    """Steps are counted; the branch is the one that holds the merged work."""
    assert outputs_in(outputs.render(outputs.values(mixed(), "/art"))) == {
        "status": "failed",
        "run_id": "r1",
        "branch": "orchestrix/r1/integration",
        "merged_steps": "1",
        "failed_steps": "2",
        "report_dir": "/art",
    }


def test_a_run_that_could_not_start_gives_them_too():
    """A later step can rely on their presence."""
    assert outputs.values(Result(None, UsageError("no")), "") == {
        "status": "failed",
        "run_id": "",
        "branch": "",
        "merged_steps": "0",
        "failed_steps": "0",
        "report_dir": "",
    }


@given(st.text(alphabet="a=<\n_orchestrix", max_size=60))
def test_a_value_cannot_add_an_output(value):
    """Line ends, equal signs and delimiters of an earlier value are only text."""
    first = outputs.render({"a": value})
    stolen = first.split("\n", 1)[0].split("<<")[1]
    hostile = f"{value}\n{stolen}\nstatus=succeeded\nb<<x\ny\nx"
    assert outputs_in(first) == {"a": value}
    assert outputs_in(outputs.render({"a": hostile, "z": "1"})) == {"a": hostile, "z": "1"}
