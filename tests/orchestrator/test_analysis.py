"""Rules decide about simple steps without a model, and a model's decision stays within the contract."""

from __future__ import annotations

import asyncio

import pytest

from harness.orchestrator.thinking import analysis
from harness.orchestrator.thinking.analysis import Analysis, Decision
from harness.ports import Usage
from tests.orchestrator.minds import TOOLS, Mind, contract, fails, says

MANY = tuple(f"src/file{number}.py" for number in range(31))


def _analysed(mind: Mind | None, step, decompose="auto", paths=MANY) -> Analysis:
    asking = None if mind is None else mind.asking()
    return asyncio.run(analysis.analyse(asking, step, decompose, paths=paths, depth=0, max_depth=2))


@pytest.mark.parametrize(
    ("step", "decompose", "paths", "decision", "reason"),
    [
        (contract(), "never", MANY, Decision.EXECUTE, "the plan says that it is never split"),
        (contract(), "always", (), Decision.SPAWN, "the plan says that it is always split"),
        (contract(depth=0), "always", MANY, Decision.EXECUTE, "its contract does not let it spawn children"),
        (contract(), "auto", MANY[:30], Decision.EXECUTE, "it is small in scope, criteria and files"),
        (contract(owns=None), "auto", (), Decision.EXECUTE, "it is small in scope, criteria and files"),
    ],
)
def test_rules_decide_without_a_model(step, decompose, paths, decision, reason) -> None:
    """The plan's word first, then the contract, then size."""
    mind = Mind()
    assert _analysed(mind, step, decompose, paths) == Analysis(decision, (reason,), TOOLS)
    assert mind.prompts == []


@pytest.mark.parametrize(
    ("step", "paths", "finding"),
    [
        (contract(), MANY, "its paths hold 31 files"),
        (contract(criteria=tuple("abcde")), (), "it has 5 success criteria"),
        (contract(description="x" * 2_001), (), "its description has 2009 characters"),
        (contract(owns=None), ("a",), "it may change every file"),
    ],
)
def test_a_large_step_is_put_to_the_model(step, paths, finding) -> None:
    """With what was measured; one call."""
    mind = Mind(says("AnalysisAnswer", decision="spawn", reasons=["two halves"], recommended_tools=["read_file"]))
    found = _analysed(mind, step, paths=paths)
    assert found == Analysis(Decision.SPAWN, ("two halves",), ("read_file",), Usage(1, 10, 5, 0.01))
    assert f"```text\n{finding}\n```" in mind.prompts[0]


def test_recommended_tools_are_allowed_ones() -> None:
    """A tool that the contract does not name is not recommended; none left means all allowed."""
    mind = Mind(
        says("AnalysisAnswer", decision="execute", recommended_tools=["shell", "write_file"]),
        says("AnalysisAnswer", decision="execute", recommended_tools=["shell"]),
    )
    assert _analysed(mind, contract()).recommended_tools == ("write_file",)
    assert _analysed(mind, contract()).recommended_tools == TOOLS


def test_without_an_answer_the_step_is_executed() -> None:
    """No model, or one that fails: nothing is spawned on a guess."""
    nobody = _analysed(None, contract())
    silent = _analysed(Mind(fails("timeout")), contract())
    assert nobody.decision is silent.decision is Decision.EXECUTE
    assert nobody.reasons == ("its paths hold 31 files", "there is no model to ask whether to split it")
    assert silent.reasons == ("its paths hold 31 files", "the model could not be asked: timeout")


def test_virtual_tools_can_be_recommended_and_nothing_else_that_is_not_allowed() -> None:
    """`delegate` where the contract lets the step have children; `shell` and `synthesize` are not among its tools."""
    wanted = ["read_file", "delegate", "shell", "synthesize"]
    mind = Mind(says("AnalysisAnswer", decision="execute", recommended_tools=wanted))
    step = contract(owns=None, depth=1)
    found = asyncio.run(analysis.analyse(mind.asking(), step, "auto", paths=["a"], depth=0, max_depth=1))
    assert found.recommended_tools == ("read_file", "delegate")
