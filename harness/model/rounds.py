"""The plans of one run, one after the other: what they are together, and an order that no later round changes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.model.plan import Plan
from harness.model.schedule import Schedule, StepSchedule, schedule


def plan(goal: str, rounds: Sequence[Mapping[str, Any]]) -> Plan:
    """All steps as one plan; one without steps before the first round."""
    if not rounds:
        return Plan.model_construct(version=1, goal=goal, steps=[])
    plans = [Plan.model_validate(dict(data)) for data in rounds]
    return plans[-1].model_copy(update={"goal": goal, "steps": [step for one in plans for step in one.steps]})


def order(rounds: Sequence[Mapping[str, Any]]) -> Schedule:
    """Each round's own order; steps of different rounds never need each other: a round stands on what came before."""
    steps: list[StepSchedule] = []
    parts = [schedule(Plan.model_validate(dict(data))) for data in rounds]
    for part in parts:
        first = len(steps)
        steps += [
            StepSchedule(
                step.idx + first,
                tuple(need + first for need in step.needs),
                step.implied << first,
                step.before << first,
                step.clashes << first,
            )
            for step in part.steps
        ]
    boundaries = tuple(boundary for part in parts for boundary in part.boundaries)
    return Schedule(tuple(steps), boundaries, ())
