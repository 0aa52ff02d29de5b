"""A model's answer as the data of a plan file: its words for the work, the person's for everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.model.contract import DEFAULT_TOOLS
from harness.orchestrator.thinking.bounds import Bounds

if TYPE_CHECKING:
    from harness.orchestrator.thinking.answers import PlanAnswer, PlannedStep


def plan(goal: str, answer: PlanAnswer, bounds: Bounds) -> dict[str, Any]:
    """The plan; steps that own a path in common must say which one needs the other."""
    return {
        "version": 1,
        "goal": goal,
        "overlap": "refuse",
        "defaults": _defaults(bounds),
        "steps": [_step(step, bounds) for step in answer.steps],
    }


def _defaults(bounds: Bounds) -> dict[str, Any]:
    given: dict[str, Any] = {"agent": bounds.agents[0]}
    if bounds.tools != DEFAULT_TOOLS:
        given["allowed_tools"] = list(bounds.tools)
    if bounds.checks:
        given["checks"] = [command if isinstance(command, str) else list(command) for command in bounds.checks]
    if bounds.timeout_ms is not None:
        given["timeout"] = f"{bounds.timeout_ms}ms"
    if bounds.retries is not None:
        given["retries"] = bounds.retries
    return given


def _step(step: PlannedStep, bounds: Bounds) -> dict[str, Any]:
    written: dict[str, Any] = {"title": step.title}
    if step.description.strip():
        written["description"] = step.description
    if step.agent is not None:
        written["agent"] = step.agent
    if step.needs:
        written["needs"] = step.needs
    written["owns"] = step.owns
    if step.success_criteria:
        written["success_criteria"] = step.success_criteria
    if step.tools is not None:
        written["allowed_tools"] = step.tools
    if step.complex and bounds.splits:
        levels = bounds.max_depth - bounds.depth
        written |= {"decompose": "auto", "can_spawn_children": True, "max_delegation_depth": levels}
    return written
