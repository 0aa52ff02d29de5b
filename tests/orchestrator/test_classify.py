"""Whether a goal needs more work: facts say so where they can, and rounds are bounded."""

from __future__ import annotations

import asyncio

import pytest

from harness.orchestrator.thinking import classify
from harness.orchestrator.thinking.classify import Classification
from harness.orchestrator.thinking.results import Result
from harness.ports import Usage
from tests.orchestrator.minds import Mind, fails, says

GOOD = Result("0", "Write it", completed=True)
BAD = Result("1", "Check it", completed=False, reason="check_failed", message="exit 1")


def _classified(mind: Mind | None, *ended: Result, partial: bool = False, rounds_left: int = 1) -> Classification:
    asking = None if mind is None else mind.asking()
    return asyncio.run(classify.classify(asking, "goal", ended, partial=partial, rounds_left=rounds_left))


@pytest.mark.parametrize(
    ("ended", "partial", "rounds_left", "reason"),
    [
        ([GOOD], False, 1, "every step was completed and the plan covered the whole goal"),
        ([GOOD, BAD], False, 0, "no round of planning is left"),
        ([GOOD], True, 0, "no round of planning is left"),
    ],
)
def test_facts_settle_it_without_a_model(ended, partial, rounds_left, reason) -> None:
    """All completed, or no round left."""
    mind = Mind()
    found = _classified(mind, *ended, partial=partial, rounds_left=rounds_left)
    assert found == Classification(more_work=False, reasons=(reason,))
    assert mind.prompts == []


@pytest.mark.parametrize(("ended", "partial"), [([GOOD, BAD], False), ([GOOD], True)])
def test_a_failure_or_a_partial_plan_is_put_to_the_model(ended, partial) -> None:
    """One call; what is missing is the context of the next plan."""
    mind = Mind(says("ClassificationAnswer", more_work=True, reasons=["half"], missing="the other half"))
    found = _classified(mind, *ended, partial=partial)
    assert found == Classification(True, ("half",), "the other half", Usage(1, 10, 5, 0.01))


def test_more_work_without_saying_which_is_none() -> None:
    """A round that has nothing to plan for would go on for ever."""
    mind = Mind(says("ClassificationAnswer", more_work=True, missing=" "))
    assert not _classified(mind, BAD).more_work


def test_without_an_answer_nothing_more_is_planned() -> None:
    """No model, or one that fails."""
    assert _classified(None, BAD).reasons == ("there is no model to ask",)
    assert _classified(Mind(fails("auth")), BAD).reasons == ("the model could not be asked: auth",)
