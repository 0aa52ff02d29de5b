"""A test case for each step, well-formed whatever happened."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from harness.ci import junit
from harness.ci.result import Result
from harness.errors import Interrupted, PlanInvalid
from tests.ci.stories import mixed, told
from tests.store import samples
from tests.store.samples import of

_MIXED = """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="orchestrix" tests="3" failures="1" errors="0" skipped="1" time="0.010">
  <testsuite name="plan.yaml" tests="3" failures="1" errors="0" skipped="1" time="0.010" timestamp="2026-01-02T03:04:05.678901Z">
    <properties>
      <property name="run_id" value="r1" />
      <property name="base" value="aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" />
      <property name="head" value="cccccccccccccccccccccccccccccccccccccccc" />
      <property name="integration_ref" value="refs/heads/orchestrix/r1/integration" />
    </properties>
    <testcase classname="plan.yaml" name="step 0: a step" time="0.005" />
    <testcase classname="plan.yaml" name="step 1: &lt;b&gt;" time="0.005">
      <failure type="agent_failed" message="agent_failed: first">first
second</failure>
      <system-out>]]&gt; \ufffd[31m</system-out>
    </testcase>
    <testcase classname="plan.yaml" name="step 2: a step" time="0.000">
      <skipped message="dependency_failed: step 2 needs step 1, which failed" />
    </testcase>
  </testsuite>
</testsuites>
"""


def test_each_step_is_a_case_with_time_reason_and_output():
    """Merged, failed and never run are told apart; markup and control characters are text."""
    assert junit.render(mixed(title="<b>", message="first\nsecond", output="]]> \x1b[31m")) == _MIXED


@given(text=st.text(st.characters(), max_size=50))
def test_any_text_makes_well_formed_xml(text):
    """Control characters, halves of surrogate pairs, CDATA ends: a parser reads them all."""
    document = junit.render(mixed(message=f"x{text}", output=f"x{text}"))
    failure = ET.fromstring(document.encode()).find(".//failure")
    assert failure is not None
    assert failure.text.startswith("x")


def test_a_run_that_could_not_start_is_one_case_with_an_error():
    """Whoever reads only the XML sees why, and where."""
    problem = {"file": "p.yaml", "line": 3, "column": 5, "field": "steps[0].titel", "message": "unknown field"}
    error = PlanInvalid("p.yaml:3:5: unknown field", hint="write title", errors=[problem])
    root = ET.fromstring(junit.render(Result(None, error)).encode())
    assert (root.get("tests"), root.get("errors")) == ("1", "1")
    found = root.find("./testsuite/testcase[@name='run']/error")
    assert found is not None
    assert found.get("type") == "plan_invalid"
    assert found.text == "p.yaml:3:5: unknown field\nwrite title\np.yaml:3:5: steps[0].titel: unknown field"


def test_an_interrupted_run_tells_what_was_under_way_from_what_never_began():
    """A running step is an error, one that was not started is skipped, and the signal is a case of its own."""
    facts = [
        samples.run_created(),
        samples.run_started(),
        *samples.merged_step(**of(0))[:3],
        samples.created(**of(1)),
    ]
    root = ET.fromstring(junit.render(told(facts, error=Interrupted("stopped by SIGTERM"))).encode())
    assert [case.get("name") for case in root.iter("testcase")] == ["step 0: a step", "step 1: a step", "run"]
    assert [[child.tag for child in case] for case in root.iter("testcase")] == [["error"], ["skipped"], ["error"]]
