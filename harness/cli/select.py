"""Finds the step that a user means."""

from __future__ import annotations

from harness.errors import NotFound
from harness.model.state import RunState, StepState


def step(state: RunState, name: str) -> StepState:
    """By path id or by the slug that the plan gave it; raises NotFound."""
    for item in state.ordered():
        if name in (item.task_id, item.step_id):
            return item
    known = ", ".join(item.task_id for item in state.ordered()[:20])
    raise NotFound(f"run {state.run_id} has no step {name!r:.80}", hint=f"its steps are {known}")


def steps(state: RunState, name: str | None) -> list[StepState]:
    """That one, or all of them."""
    return state.ordered() if name is None else [step(state, name)]
