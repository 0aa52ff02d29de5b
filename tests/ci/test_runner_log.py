"""What the runner's log shows: groups for the steps, errors at their places."""

from __future__ import annotations

import pytest

from harness.ci import runner_log
from harness.ci.result import Result
from harness.errors import EnvironmentProblem, PlanInvalid
from tests.ci.stories import mixed

_YAML = "version: 1\nsteps:\n  - title: a\n    command: [x]\n\n  - title: b\n    command: [x]\n"
_JSON = '{"steps": [\n {"title": "a",\n "command": ["x"]},\n {"title": "b", "command": ["x"]}]}\n'


def test_groups_fold_the_steps_and_errors_stand_outside():
    """Commands of agents are neutralised inside; a skipped step is no error of its own."""
    result = mixed(title="a, ##[b]", message="no\n::error::x", output="\x1b[31mred\r\n ::set-env name=A::b\n##[x]\n")
    assert list(runner_log.render(result, "plans/p.yaml", lambda idx: 10 + idx)) == [
        "::group::step 0: a step: merged (5ms)",
        "::endgroup::",
        "::group::step 1: a, ##\\u005bb]: agent_failed (5ms)",
        "no",
        "\\u003a:error::x",
        "work kept at refs/orchestrix/keep/r1/1/x",
        "red",
        " \\u003a:set-env name=A::b",
        "##\\u005bx]",
        "::endgroup::",
        "::group::step 2: a step: dependency_failed (0ms)",
        "step 2 needs step 1, which failed",
        "::endgroup::",
        "::error file=plans/p.yaml,line=11,title=step 1%3A a%2C ##\\u005bb] (agent_failed)::no%0A::error::x",
    ]


def test_every_problem_of_a_plan_is_an_error_at_its_line():
    """With the field and what to write instead."""
    problem = {
        "file": "x",
        "line": 3,
        "column": 5,
        "field": "steps[0].titel",
        "message": "unknown",
        "suggestion": "title",
    }
    error = PlanInvalid("p.yaml:3", errors=[problem, {**problem, "line": None, "field": "", "suggestion": ""}])
    assert list(runner_log.render(Result(None, error), "p.yaml", lambda _idx: None)) == [
        "::error file=p.yaml,line=3,title=plan_invalid::steps[0].titel: unknown (title)",
        "::error file=p.yaml,title=plan_invalid::unknown",
    ]


def test_any_other_error_is_named_without_a_place():
    """It is about the job, not about a file."""
    error = EnvironmentProblem("git is not installed", hint="install it")
    assert list(runner_log.render(Result(None, error), "p.yaml", lambda _idx: None)) == [
        "::error title=orchestrix%3A environment::git is not installed (install it)",
    ]


@pytest.mark.parametrize(("text", "lines"), [(_YAML, [3, 6]), (_JSON, [2, 4])])
def test_a_step_is_found_in_the_plan(text, lines):
    """In YAML and in JSON, by the line on which it begins."""
    line_of = runner_log.step_lines(text)
    assert [line_of(0), line_of(1)] == lines
