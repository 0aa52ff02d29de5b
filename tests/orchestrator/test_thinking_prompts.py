"""Prompts are data files with a version, filled in one pass, and what is quoted in them cannot get out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import PlanningFailed
from harness.model import limits
from harness.orchestrator.thinking import analysis, bounds, classify, planner, prompts, synthesis
from harness.orchestrator.thinking.prompts import Rendered
from harness.orchestrator.thinking.results import Result
from tests.orchestrator.minds import BOUNDS, Mind, contract, planned, says

GOLDEN = Path(__file__).parent / "golden"
ENDED = [
    Result("0", "Write it", completed=True, changed_paths=("a.txt",), report="I wrote it."),
    Result("1", "Check it", completed=False, reason="check_failed", message="exit 1"),
]


class Secretary(Mind):
    """Keeps every question whole."""

    def __init__(self, *entries) -> None:
        super().__init__(*entries)
        self.letters: list[str] = []

    async def answer(self, system, prompt, shape, *, timeout_ms, **told):
        self.letters.append(f"{system}\n=====\n\n{prompt}")
        return await super().answer(system, prompt, shape, timeout_ms=timeout_ms, **told)


def _plan() -> str:
    mind = Secretary(says("PlanAnswer", steps=[planned()]))
    asyncio.run(
        planner.plan(mind.asking(), "Add a limiter", BOUNDS, repository="files: 1\ntree:\n  a.py", context="Hurry.")
    )
    return mind.letters[0]


def _repair() -> str:
    bad = says("PlanAnswer", steps=[planned(agent="nobody")])
    mind = Secretary(bad, bad, bad)
    with pytest.raises(PlanningFailed):
        asyncio.run(planner.plan(mind.asking(), "Add a limiter", BOUNDS, repository="files: 0\ntree:\n"))
    return mind.letters[1]


def _decompose() -> str:
    mind = Secretary(says("PlanAnswer", steps=[planned(owns=["src/a.py"])]))
    step = contract(criteria=("it works",))
    inner = bounds.of_step(step, ["builtin"], depth=1)
    asyncio.run(planner.decompose(mind.asking(), step, inner, repository="files: 1\ntree:\n  src/a.py"))
    return mind.letters[0]


def _analysis() -> str:
    mind = Secretary(says("AnalysisAnswer", decision="execute"))
    step = contract(criteria=tuple(f"fact {number}" for number in range(6)))
    asyncio.run(analysis.analyse(mind.asking(), step, "auto", paths=["src/a.py"], depth=0, max_depth=2))
    return mind.letters[0]


def _classification() -> str:
    mind = Secretary(says("ClassificationAnswer", more_work=False))
    asyncio.run(classify.classify(mind.asking(), "Add a limiter", ENDED, partial=True, rounds_left=1))
    return mind.letters[0]


def _synthesis() -> str:
    mind = Secretary(says("SynthesisAnswer", answer="Done."))
    asyncio.run(synthesis.synthesise(mind.asking(), "Add a limiter", ENDED))
    return mind.letters[0]


@pytest.mark.parametrize("question", [_plan, _repair, _decompose, _analysis, _classification, _synthesis])
def test_a_model_is_sent_exactly_this(question) -> None:
    """The golden file of each question; a change of words is a new version of the prompt."""
    assert question() == (GOLDEN / f"{question.__name__.strip('_')}.txt").read_text()


def test_every_prompt_file_has_a_header_and_is_known() -> None:
    """Names and versions, and no file that nothing asks with."""
    found = sorted(path.stem for path in (Path(prompts.__file__).parents[1] / "prompts").glob("*.md"))
    assert found == ["analysis", "classification", "decompose", "plan", "repair", "synthesis"]
    assert {name: prompts._template(name)[0] for name in found} == {**dict.fromkeys(found, 1), "synthesis": 2}


def test_every_question_names_its_prompt_and_version() -> None:
    """The log says which words were used."""
    mind = Mind(says("SynthesisAnswer", answer="Done."))
    asyncio.run(synthesis.synthesise(mind.asking(task="2"), "goal", ENDED))
    (fact,) = mind.facts
    assert (fact.type, fact.purpose, fact.version, fact.task_id) == ("model.answered", "synthesis", 2, "2")
    assert fact.summary == "scripted answered (synthesis, 10 + 5 tokens)"


@given(st.text(max_size=300))
def test_quoted_text_ends_where_its_fence_does(text) -> None:
    """Whatever a repository, a report or a file name says, it stands between fences that it does not hold."""
    rendered = prompts.render("synthesis", {"words": limits.SYNTHESIS_WORDS}, {"goal": text, "results": "r"})
    body = rendered.prompt.removeprefix("## The goal\n")
    if not text.strip():
        assert body.startswith("(none)\n")
        return
    fence = body.partition("text\n")[0]
    inside, _, after = body.removeprefix(f"{fence}text\n").partition(f"\n{fence}\n")
    assert set(fence) == {"`"}
    assert fence not in inside
    assert after == "\n## The steps and their reports\n```text\nr\n```\n"


def test_slots_in_quoted_text_are_not_filled() -> None:
    """One pass: what is filled in is never read again."""
    rendered = prompts.render("synthesis", {"words": 9}, {"goal": "{{results}} {{words}}", "results": "secret"})
    assert isinstance(rendered, Rendered)
    assert "```text\n{{results}} {{words}}\n```" in rendered.prompt
