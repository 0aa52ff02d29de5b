"""A real model plans through the code that every model plans through: what it says is nonsense, its form is not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.config import plan_file
from harness.models.access import Access
from harness.models.choice import make
from harness.orchestrator.thinking.answers import PlanAnswer
from tests.support.workbench import Workbench

pytestmark = pytest.mark.small_model

GOALS = ("Add rate limiting", "Write a greeting", "Sort the words of words.txt")


@pytest.mark.parametrize("goal", GOALS)
def test_an_answer_fits_the_schema(endpoint: str, goal: str) -> None:
    """Forced by the schema that we send, at the first attempt or after a repair."""
    model = make(Access("openai", "smollm2", endpoint, None, "tool"))
    asked = f"Write a plan of two short steps for this goal: {goal}. Every step owns one file."
    answer = asyncio.run(model.answer("You plan work.", asked, PlanAnswer, timeout_ms=300_000))
    assert isinstance(answer.value, PlanAnswer)
    assert answer.value.steps
    assert answer.usage.output_tokens > 0


def test_a_goal_becomes_a_plan_file_or_a_list_of_problems(endpoint: str, tmp_path: Path, monkeypatch) -> None:
    """`orchestrix plan`: a file that is a valid plan, or `planning_failed` with every problem and no file."""
    bench = Workbench(tmp_path)
    bench.commit({"README.md": "A list of words.\n"})
    monkeypatch.setenv("ORCHESTRIX_MODEL", "openai:smollm2")
    monkeypatch.setenv("ORCHESTRIX_MODEL_BASE_URL", endpoint)
    plan = tmp_path / "plan.yaml"
    done = bench.call("plan", "Write a greeting", "-o", str(plan), "--agent", "builtin", "--json")
    if done.code == 0:
        assert plan_file.parse(plan.read_text(), plan.name).plan.steps
    else:
        assert done.envelope["error"]["code"] == "planning_failed", done.out
        assert done.envelope["error"]["problems"]
        assert not plan.exists()
