"""A question is asked once: its answer is a fact before it is used, and a resumed run finds it there."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from harness.errors import ModelFailed, ModelFault
from harness.model.events import Envelope, ModelAnswered, seal
from harness.model.ids import RunId
from harness.orchestrator.thinking import analysis, asking, classify, planner, prompts, synthesis
from harness.orchestrator.thinking.answers import AnalysisAnswer, SynthesisAnswer
from harness.orchestrator.thinking.results import Result
from harness.ports import Usage
from tests.orchestrator.minds import BOUNDS, Mind, contract, says

QUESTION = prompts.render("synthesis", {"words": 5}, {"goal": "g", "results": "r"})


class Sleeper(Mind):
    """Never answers."""

    async def answer(self, system, prompt, shape, *, timeout_ms, **told):
        await asyncio.Event().wait()


def _log(mind: Mind) -> list[Envelope]:
    return [
        seal(fact, run_id=RunId("r1"), seq=seq, prev_hash="0" * 64, ts="2026-01-01T00:00:00.000Z")
        for seq, fact in enumerate(mind.facts, 1)
    ]


def test_an_answer_in_the_log_is_not_asked_for_again() -> None:
    """The second process gives the same value, asks nothing and counts nothing."""
    first = Mind(says("SynthesisAnswer", answer="Done."))
    given = asyncio.run(first.asking().ask(QUESTION, SynthesisAnswer))
    second = Mind()
    again = asyncio.run(second.asking(memory=asking.remembered(_log(first))).ask(QUESTION, SynthesisAnswer))
    assert (again.value, again.usage, again.model) == (given.value, Usage(), given.model)
    assert (second.prompts, second.facts) == ([], [])


def test_another_question_is_another_call() -> None:
    """Words, version and shape make the question."""
    mind = Mind(says("SynthesisAnswer", answer="One."), says("SynthesisAnswer", answer="Two."))
    asyncio.run(mind.asking().ask(QUESTION, SynthesisAnswer))
    other = prompts.render("synthesis", {"words": 6}, {"goal": "g", "results": "r"})
    given = asyncio.run(mind.asking(memory=asking.remembered(_log(mind))).ask(other, SynthesisAnswer))
    assert given.value.answer == "Two."


def test_an_answer_of_another_shape_is_asked_for_again() -> None:
    """A log that a different version wrote does not break a resume."""
    mind = Mind(says("AnalysisAnswer", decision="spawn"))
    digest = asking._digest(QUESTION, AnalysisAnswer)
    fact = ModelAnswered(
        purpose="synthesis",
        version=1,
        question=digest,
        model="m",
        duration_ms=1,
        task=None,
        answer={"verdict": 1},
        calls=1,
        input_tokens=1,
        output_tokens=1,
        cost_usd=None,
    )
    given = asyncio.run(mind.asking(memory={digest: fact}).ask(QUESTION, AnalysisAnswer))
    assert given.value.decision == "spawn"


def test_a_model_that_hangs_is_not_waited_for() -> None:
    """Time runs out for an adapter that forgets its own limit, too."""
    mind = Sleeper()
    with pytest.raises(ModelFailed) as caught:
        asyncio.run(mind.asking(timeout_ms=20).ask(QUESTION, SynthesisAnswer))
    assert caught.value.kind is ModelFault.TIMEOUT
    assert [fact.summary for fact in mind.facts] == [
        "scripted did not answer (synthesis): timeout: scripted did not answer within 20ms"
    ]


def test_an_answer_that_cannot_be_recorded_is_not_used() -> None:
    """No effect without its fact."""
    mind = Mind(says("SynthesisAnswer", answer="Done."))

    def full(_fact):
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        asyncio.run(asking.Asking(mind, record=full).ask(QUESTION, SynthesisAnswer))


@pytest.mark.parametrize(
    ("parts", "sum_"),
    [
        ([], Usage(0, 0, 0, 0)),
        ([Usage(), Usage(1, 2, 3, 0.5)], Usage(1, 2, 3, 0.5)),
        ([Usage(1, 1, 1, None), Usage(1, 2, 3, 0.5)], Usage(2, 3, 4, None)),
    ],
)
def test_usage_adds_up_and_an_unknown_price_stays_unknown(parts, sum_) -> None:
    assert asking.total(parts) == sum_


BOTH = (Result("0", "Write it", completed=True), Result("1", "Check it", completed=False, reason="check_failed"))


@pytest.mark.parametrize(
    "question",
    [
        lambda asking: planner.plan(asking, "goal", BOUNDS, repository="files: 1"),
        lambda asking: planner.decompose(asking, contract(), BOUNDS, repository="files: 1"),
        lambda asking: analysis.analyse(asking, contract(owns=None), "auto", paths=["a"], depth=0, max_depth=1),
        lambda asking: classify.classify(asking, "goal", BOTH, partial=False, rounds_left=1),
        lambda asking: synthesis.synthesise(asking, "goal", BOTH),
    ],
    ids=["plan", "decompose", "analysis", "classification", "synthesis"],
)
def test_one_time_binds_every_question(question) -> None:
    """A model that says nothing is not waited for longer than `model.timeout`, whatever it was asked."""
    mind = Sleeper()

    async def within() -> None:
        with contextlib.suppress(ModelFailed):
            await asyncio.wait_for(question(mind.asking(timeout_ms=20)), 20)

    asyncio.run(within())
    assert {fact.kind for fact in mind.facts} == {"timeout"}


def test_an_answer_is_heard_while_it_is_given() -> None:
    """Piece by piece, and whole in the log."""
    mind, heard = Mind(says("SynthesisAnswer", answer="One.\nTwo.")), []
    asyncio.run(mind.asking(hears=heard.append).ask(QUESTION, SynthesisAnswer, aloud=True))
    assert heard == ["One.\n", "Two."]
    assert mind.facts[0].answer == {"answer": "One.\nTwo."}
