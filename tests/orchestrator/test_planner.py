"""A plan from a model is checked like any other: it is whole and within its bounds, or it is not a plan."""

from __future__ import annotations

import asyncio

import pytest

from harness.config import plan_file
from harness.errors import ModelFailed, PlanningFailed, UsageError
from harness.model import limits
from harness.orchestrator.thinking import bounds, planner
from harness.orchestrator.thinking.planner import Planned
from harness.ports import Usage
from tests.orchestrator.minds import BOUNDS, TOOLS, Mind, contract, fails, planned, says

GOAL = "Add rate limiting"


def _planned(mind: Mind, goal: str = GOAL, within: bounds.Bounds = BOUNDS) -> Planned:
    return asyncio.run(planner.plan(mind.asking(), goal, within, repository="files: 0\ntree:\n"))


def _refused(*steps: dict) -> list[str]:
    """The problems that the model was told after this answer."""
    bad = says("PlanAnswer", steps=list(steps))
    with pytest.raises(PlanningFailed) as caught:
        _planned(Mind(bad, bad, bad))
    return caught.value.details["problems"]


def test_a_plan_has_the_models_steps_and_the_persons_terms() -> None:
    """What the model says of the work, and agent, tools and checks as they were offered."""
    steps = [
        planned("Write limiter", success_criteria=["it limits"]),
        planned("Wire limits", owns=["server.py"], needs=[0], tools=["read_file"], agent="claude", complex=True),
    ]
    mind = Mind(says("PlanAnswer", steps=steps, partial=True))
    made = _planned(mind)
    assert made.loaded.text == (
        "version: 1\n"
        "goal: Add rate limiting\n"
        "overlap: refuse\n"
        "defaults:\n"
        "  agent: builtin\n"
        "  allowed_tools: [read_file, write_file]\n"
        "  checks: [pytest -q]\n"
        "steps:\n"
        "  - title: Write limiter\n"
        "    description: Do it.\n"
        "    owns: [limiter.txt]\n"
        "    success_criteria: [it limits]\n"
        "\n"
        "  - title: Wire limits\n"
        "    description: Do it.\n"
        "    agent: claude\n"
        "    needs: [0]\n"
        "    owns: [server.py]\n"
        "    allowed_tools: [read_file]\n"
        "    decompose: auto\n"
        "    can_spawn_children: true\n"
        "    max_delegation_depth: 2\n"
    )
    assert made.loaded.schedule.waves == ((0,), (1,))
    assert (made.partial, made.rounds, made.usage, made.model) == (True, 1, Usage(1, 10, 5, 0.01), "scripted")
    assert plan_file.parse(made.loaded.text, "again.yaml").plan == made.loaded.plan


def test_a_bad_plan_is_sent_back_with_its_problems() -> None:
    """The second answer is asked for with the first one and all that is wrong with it."""
    mind = Mind(
        says("PlanAnswer", steps=[planned(agent="nobody", needs=[4])]), says("PlanAnswer", steps=[planned("Good it")])
    )
    made = _planned(mind)
    assert [step.title for step in made.loaded.plan.steps] == ["Good it"]
    assert (made.rounds, made.usage) == (2, Usage(2, 20, 10, 0.02))
    assert "## Why it was refused" not in mind.prompts[0]
    repair = mind.prompts[1].partition("## Why it was refused\n")[2]
    assert repair == (
        "```text\n"
        "- steps[0].agent: there is no agent 'nobody'; on offer: builtin, claude\n"
        "- steps[0].needs[0]: there is no step 4 (the first step can need nothing)\n"
        "```\n\n"
        "Answer again, whole, with all of this put right.\n"
    )


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([planned(needs=[0])], "steps[0].needs[0]: a step cannot need itself (remove it)"),
        (
            [planned(needs=[1]), planned("Other one", needs=[0])],
            "steps[0].needs[0]: step 1 comes later and needs this one: a cycle (move step 1 before step 0, or remove the need)",
        ),
        (
            [planned(owns=["src/**"]), planned("Other one", owns=["src/a.py"])],
            (
                "steps[1].owns: step 1 may change what step 0 changes (src/a.py meets src/**), and `overlap: refuse` wants "
                "that written (needs: [0])"
            ),
        ),
        ([planned(owns=["/etc/passwd"])], "steps[0].owns[0]: '/etc/passwd' is absolute"),
        ([planned(owns=["../up"])], "steps[0].owns[0]: '../up' leaves its directory with .."),
        ([planned(owns=[".git/hooks/**"])], "steps[0].owns: planned steps never own .git/hooks/**"),
        ([planned(owns=[".Orchestrix/x"])], "steps[0].owns: planned steps never own .Orchestrix/x"),
        (
            [planned(tools=["read_file", "shell"])],
            "steps[0].tools: not on offer: 'shell'; on offer: read_file, write_file",
        ),
        ([planned("two\nlines")], "steps[0].title: must be one line without control characters"),
        ([planned("x" * 300, owns=["a"])], "steps[0].title: is longer than 200 characters (shorten it)"),
        (
            [planned(f"Write {n}", owns=[f"{n}.txt"]) for n in range(21)],
            "steps: there are 21; at most 20 are allowed: merge some",
        ),
    ],
)
def test_what_no_plan_may_hold_no_planned_one_holds(steps, problem) -> None:
    """Graph, ownership, agents, tools and size; the problem is named."""
    assert any(told.startswith(problem) for told in _refused(*steps))


def test_after_the_last_round_every_problem_is_told() -> None:
    """The error carries all of them, so that a person can go on."""
    bad = says("PlanAnswer", steps=[planned(agent="a"), planned("Other b", agent="b")])
    mind = Mind(*[bad] * 3)
    with pytest.raises(PlanningFailed) as caught:
        _planned(mind)
    assert caught.value.message == (
        "scripted gave no valid plan in 3 rounds; the first problem: "
        "steps[0].agent: there is no agent 'a'; on offer: builtin, claude"
    )
    assert len(caught.value.details["problems"]) == 2
    assert len(mind.prompts) == limits.PLAN_REPAIRS + 1
    assert [fact.type for fact in mind.facts] == ["model.answered"] * 3


def test_a_model_that_does_not_answer_is_no_plan() -> None:
    """The model's own failure comes through, and is a fact."""
    mind = Mind(fails("rate_limit"))
    with pytest.raises(ModelFailed):
        _planned(mind)
    assert [(fact.type, fact.kind) for fact in mind.facts] == [("model.failed", "rate_limit")]


@pytest.mark.parametrize("goal", ["", " \n", "x" * (limits.TEXT_CHARS + 1), "half a pair \udcff"])
def test_a_goal_that_is_none_costs_nothing(goal) -> None:
    """It is refused before a model is asked."""
    mind = Mind()
    with pytest.raises(UsageError):
        _planned(mind, goal)
    assert mind.prompts == []


def test_a_step_is_split_within_what_it_owns_and_may_use() -> None:
    """Bounds of the children come from the parent's contract, and none of them can split again at the last level."""
    step = contract(owns=("src/api/**",), tools=("read_file",), depth=1)
    inner = bounds.of_step(step, ["builtin"], depth=1)
    steps = [planned("First half", owns=["src/api/a.py"], complex=True), planned("Second half", owns=["src/api/b/**"])]
    made = asyncio.run(
        planner.decompose(Mind(says("PlanAnswer", steps=steps)).asking(), step, inner, repository="files: 0\ntree:\n")
    )
    assert made.loaded.text.startswith(
        "version: 1\n"
        "goal: |-\n  the step\n\n  Do it.\n"
        "overlap: refuse\n"
        "defaults:\n  agent: builtin\n  allowed_tools: [read_file]\n  timeout: 60000ms\n  retries: 1\n"
    )
    assert not any(step.can_spawn_children for step in made.loaded.plan.steps)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"owns": ["src/**"]}, "not within what may be owned: src/**"),
        ({"owns": ["src/api/a", "README.md"]}, "not within what may be owned: README.md"),
        ({"owns": ["src/api/a"], "tools": ["write_file"]}, "not on offer: 'write_file'"),
    ],
)
def test_a_split_never_reaches_beyond_its_step(fields, problem) -> None:
    """Wider ownership and further tools are refused."""
    step = contract(owns=("src/api/**",), tools=("read_file",))
    inner = bounds.of_step(step, ["builtin"], depth=1)
    bad = says("PlanAnswer", steps=[planned(**fields)])
    with pytest.raises(PlanningFailed) as caught:
        asyncio.run(planner.decompose(Mind(bad, bad, bad).asking(), step, inner, repository=""))
    assert any(problem in told for told in caught.value.details["problems"])


def test_depth_strictly_decreases() -> None:
    """Each level may split once less than the one above it."""
    levels = [bounds.of_step(contract(depth=depth), ["a"], depth=3 - depth) for depth in (2, 1)]
    assert [(inner.depth, inner.max_depth, inner.splits) for inner in levels] == [(1, 2, True), (2, 2, False)]
    assert bounds.of_step(contract(), ["a"], depth=1).tools == TOOLS
