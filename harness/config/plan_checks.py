"""What a well-formed plan must also make sense of: each step's one way of working, its patterns, its order."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model import candidates, globs, limits, nesting, within
from harness.model import contract as contracts
from harness.model.needs import Problem
from harness.model.plan import Plan, Step
from harness.model.schedule import schedule

_WAYS = "give it `command` (an argument list), `actions` (a list of edits) or `agent` (a name)"


def check(plan: Plan) -> list[Problem]:
    """Everything wrong with single steps; `model.schedule` finds what is wrong between them."""
    return [
        problem
        for idx, step in enumerate(plan.steps)
        for problem in (
            *_way(idx, step, _agent(plan, step)),
            *_race(idx, step, plan),
            *_patterns(idx, step),
            *_nested(plan, idx, step),
        )
    ]


def _agent(plan: Plan, step: Step) -> str | None:
    return next(iter(candidates.of(plan, step)), None) or step.agent or plan.defaults.agent


def _nested(plan: Plan, idx: int, step: Step) -> Iterator[Problem]:
    """The steps of a step are a plan of their own, within what their parent owns."""
    if step.steps is None:
        return
    if step.decompose == "never":
        yield Problem(("steps", idx, "decompose"), "a step with `steps` is split", "remove `decompose: never`")
    yield from _levels(plan, idx, step)
    inner = Plan.model_validate(nesting.plan(plan, step))
    problems = check(inner)
    if not any("owns" in problem.field for problem in problems):
        problems += schedule(inner).problems
        problems += [
            Problem(("steps", place, "owns"), f"{pattern!r:.80} reaches beyond what its parent owns", "narrow it")
            for place, child in enumerate(inner.steps)
            for pattern in within.outside(child.owns or [], step.owns)
        ]
    yield from (Problem(("steps", idx, *problem.field), problem.message, problem.suggestion) for problem in problems)


def _levels(plan: Plan, idx: int, step: Step) -> Iterator[Problem]:
    """Steps below a step are delegated: the step must be allowed that, as many levels deep as they are."""
    terms = contracts.with_defaults(plan, step)
    if terms.can_spawn_children is False:
        yield Problem(
            ("steps", idx, "can_spawn_children"),
            "a step with `steps` has children, and `can_spawn_children: false` forbids them",
            "remove one of the two",
        )
    deep, allowed = _deep(step), terms.max_delegation_depth
    if allowed is not None and deep > allowed:
        yield Problem(
            ("steps", idx, "max_delegation_depth"),
            f"its steps are {deep} level{'s' if deep > 1 else ''} deep, and `max_delegation_depth` allows {allowed}",
            f"raise it to {deep}, or write fewer levels",
        )
    elif deep > limits.DELEGATION_LEVELS:
        yield Problem(
            ("steps", idx, "steps"),
            f"its steps are {deep} levels deep; at most {limits.DELEGATION_LEVELS} are allowed",
            "write fewer levels",
        )


def _deep(step: Step) -> int:
    """How many levels of steps are below a step."""
    return 0 if step.steps is None else 1 + max(map(_deep, step.steps))


def _way(idx: int, step: Step, agent: str | None) -> Iterator[Problem]:
    """A step says how it is done exactly once; `defaults.agent` gives way to what the step itself lists."""
    given = [name for name in ("command", "actions", "steps") if getattr(step, name) is not None]
    if len(given) > 1:
        yield Problem(
            ("steps", idx, "actions"), "a step has `command`, `actions` or `steps`, not both", "make it two steps"
        )
    elif given == ["steps"]:
        return
    elif given and step.agent not in {None, given[0]}:
        yield Problem(
            ("steps", idx, "agent"), f"a step with `{given[0]}` has no other agent", f"remove `agent: {step.agent}`"
        )
    elif not given and agent in {"command", "actions"}:
        yield Problem(("steps", idx), f"the agent {agent} needs `{agent}` in the step", _WAYS)
    elif not given and agent is None:
        yield Problem(("steps", idx), "nothing says how this step is done", _WAYS)


def _patterns(idx: int, step: Step) -> Iterator[Problem]:
    for place, pattern in enumerate(step.owns or []):
        wrong = globs.problem(pattern)
        if wrong is not None:
            yield Problem(("steps", idx, "owns", place), f"{pattern!r:.80} {wrong[0]}", wrong[1][:500])


def _race(idx: int, step: Step, plan: Plan) -> Iterator[Problem]:
    """Everything wrong with a step's `candidates` and `budget`."""
    wanted = step.candidates
    where = ("steps", idx, "candidates")
    if wanted is not None and step.actions is not None:
        yield Problem(where, "the same actions give the same result each time", "remove `candidates`")
    elif isinstance(wanted, list):
        own = next((name for name in ("command", "agent") if getattr(step, name) is not None), None)
        if own:
            yield Problem(where, f"a list of agents and `{own}` both say who does the step", f"remove `{own}`")
        for name in ("actions", "command"):
            if name in wanted:
                yield Problem(where, f"the agent {name} cannot be one of several", "name agents of the settings")
    if step.budget is not None and wanted is None and plan.defaults.candidates is None:
        yield Problem(
            ("steps", idx, "budget"), "limits how many candidates start, but there is one", "add `candidates`"
        )
