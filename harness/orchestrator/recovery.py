"""The nested run that tries to mend a failed task: its step once more, with the failure, fewer tools and less time. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.model.contract import Contract
from harness.model.error_actions import Action
from harness.model.fence import fenced
from harness.model.state import StepState


def plan(contract: Contract, step: StepState) -> dict[str, Any]:
    """A plan of one step, or the steps that the plan gave it once more; what went wrong is told with each, quoted."""
    told = f"The last attempt failed ({step.last_reason}). What is known of it:\n\n{fenced(step.message or '')}"
    work = contract.work
    if work.subplan is not None:
        steps = [
            {**one, "description": f"{one.get('description', '')}\n\n{told}".strip()} for one in work.subplan["steps"]
        ]
        return {**work.subplan, "steps": steps}
    again: dict[str, Any] = {
        "title": contract.step.title,
        "description": f"{contract.step.description}\n\n{told}".strip(),
        "success_criteria": list(contract.step.success_criteria),
    }
    if contract.ownership.paths is not None:
        again["owns"] = list(contract.ownership.paths)
    if work.command is not None:
        again["command"] = list(work.command)
    elif work.actions is not None:
        again["actions"] = [{action.tool: _arguments(action.tool, action.arguments)} for action in work.actions]
    else:
        again["agent"] = work.agent
    again |= {name: value for name, value in {"env": work.env, "setup": list(work.setup)}.items() if value}
    return {"version": 1, "goal": contract.parent.task_prompt, "steps": [again]}


def _arguments(tool: str, arguments: Mapping[str, Any]) -> Any:
    return arguments["command"] if tool == "run" else dict(arguments)


def without(actions: Mapping[str, str]) -> dict[str, str]:
    """The map of actions for a recovery's own run: what would be recovered has failed."""
    return {
        reason: Action.MARK_FAILED.value if action == Action.SPAWN_RECOVERY else action
        for reason, action in actions.items()
    }
