"""A goal, or a step that is too large, becomes a checked plan, or an error with every problem; never half of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.errors import PlanInvalid, PlanningFailed, UsageError
from harness.model import limits
from harness.model.contract import Contract
from harness.model.late import dataclass
from harness.orchestrator.thinking import bounds as rules
from harness.orchestrator.thinking import draft, prompts
from harness.orchestrator.thinking.asking import Asking, total
from harness.orchestrator.thinking.bounds import Bounds
from harness.orchestrator.thinking.prompts import Rendered
from harness.orchestrator.thinking.size import cut
from harness.ports import Usage

if TYPE_CHECKING:
    from harness.config.plan_file import LoadedPlan
    from harness.orchestrator.thinking.answers import PlanAnswer

_NAME = "planned.yaml"


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan that would pass as a file; `partial` when the model says that more must be planned afterwards."""

    loaded: LoadedPlan
    partial: bool
    rounds: int
    usage: Usage
    model: str


@dataclass(frozen=True, slots=True)
class _Task:
    """What is planned for, and how it is asked."""

    prompt: str
    goal: str
    quoted: Mapping[str, str]
    bounds: Bounds

    def question(self, repair: str) -> Rendered:
        bounds = self.bounds
        again = "Steps may be split again." if bounds.splits else "Steps cannot be split again: none is `complex`."
        facts: dict[str, int | str] = {
            "max_steps": bounds.max_steps,
            "depth": bounds.depth,
            "max_depth": bounds.max_depth,
            "splitting": again,
        }
        offered = {
            "goal": self.goal,
            "scope": "**" if bounds.owns is None else "\n".join(bounds.owns),
            "agents": "\n".join(bounds.agents),
            "tools": "\n".join(bounds.tools),
            "checks": "\n".join(item if isinstance(item, str) else " ".join(item) for item in bounds.checks),
        }
        return prompts.render(self.prompt, facts, {**offered, **self.quoted}, repair=repair)


def check_goal(goal: str) -> None:
    """Raises UsageError for a goal that nothing can be planned for."""
    if not goal.strip():
        raise UsageError("the goal is empty", hint='say what is wanted: orchestrix plan "add rate limiting"')
    if len(goal) > limits.TEXT_CHARS:
        raise UsageError(f"the goal is longer than {limits.TEXT_CHARS} characters", hint="put the details into files")
    try:
        goal.encode()
    except UnicodeEncodeError as error:
        raise UsageError("the goal is not text", hint="write it in UTF-8") from error


async def plan(asking: Asking, goal: str, bounds: Bounds, *, repository: str, context: str = "") -> Planned:
    """The plan for a goal; `repository` is its map. Raises PlanningFailed, ModelFailed, and UsageError for no goal."""
    check_goal(goal)
    return await _checked(asking, _Task("plan", goal, {"context": context, "map": repository}, bounds))


async def decompose(asking: Asking, contract: Contract, bounds: Bounds, *, repository: str) -> Planned:
    """The steps that one step is split into, within `bounds.of_step`; raises PlanningFailed and ModelFailed."""
    text = contract.step
    criteria = "\n".join(f"- {criterion}" for criterion in text.success_criteria)
    step = "\n\n".join(part for part in (text.title, text.description, criteria) if part.strip())
    goal = f"{text.title}\n\n{text.description}".strip()[: limits.TEXT_CHARS]
    quoted = {"goal": contract.parent.task_prompt, "step": step, "map": repository}
    return await _checked(asking, _Task("decompose", goal, quoted, bounds))


async def _checked(asking: Asking, task: _Task) -> Planned:
    """Asks, checks as any plan is checked, sends the problems back a bounded number of times."""
    from harness.orchestrator.thinking.answers import PlanAnswer  # noqa: PLC0415 - a run of a given plan pays nothing

    used: list[Usage] = []
    repair = ""
    for rounds in range(1, limits.PLAN_REPAIRS + 2):
        given = await asking.ask(task.question(repair), PlanAnswer)
        used.append(given.usage)
        loaded, problems = _judged(given.value, task)
        if loaded is not None:
            return Planned(loaded, given.value.partial, rounds, total(used), given.model)
        told = {
            "answer": cut(given.value.model_dump_json(indent=1), limits.MAP_TOKENS),
            "problems": "\n".join(f"- {problem}" for problem in problems),
        }
        repair = prompts.render("repair", {}, told).prompt
    raise PlanningFailed(
        f"{asking.model.name} gave no valid plan in {rounds} rounds; the first problem: {problems[0]}",
        hint="say the goal more narrowly, name a larger model, or write the plan yourself",
        problems=problems,
    )


def _judged(answer: PlanAnswer, task: _Task) -> tuple[LoadedPlan | None, list[str]]:
    from harness.config import plan_file, plan_text  # noqa: PLC0415 - YAML, for plans that are made here

    problems = rules.problems(answer, task.bounds)
    try:
        loaded = plan_file.parse(plan_text.write(draft.plan(task.goal, answer, task.bounds)), _NAME)
    except PlanInvalid as error:
        problems += [_told(problem) for problem in error.details["errors"]]
        return None, problems
    return (None, problems) if problems else (loaded, [])


def _told(problem: Mapping[str, object]) -> str:
    hint = f" ({problem['suggestion']})" if problem["suggestion"] else ""
    field = f"{problem['field']}: " if problem["field"] else ""
    return f"{field}{problem['message']}{hint}"
