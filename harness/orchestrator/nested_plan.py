"""The plans of nested runs: the smaller steps that an agent asked for, and the step that a recovery does again. Pure.

What an agent asks for is data from outside: it is checked like any plan and against the agent's contract.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from harness.config import plan_checks
from harness.errors import PlanningFailed
from harness.model import within
from harness.model.contract import Contract
from harness.model.error_actions import Action
from harness.model.fence import fenced
from harness.model.plan import Plan
from harness.model.schedule import schedule
from harness.model.state import StepState

_HINT = "the agent asked for smaller steps that cannot be run"


def delegated(asked: dict[str, Any], contract: Contract) -> dict[str, Any]:
    """The plan of the nested run, done by the agent that asked; raises PlanningFailed with what is wrong."""
    data = {**asked, "defaults": {**asked.get("defaults", {}), **_terms(contract)}}
    try:
        made = Plan.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise PlanningFailed(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", hint=_HINT) from error
    problems = plan_checks.check(made)
    problems = problems or list(schedule(made).problems)
    if problems:
        raise PlanningFailed(f"{'.'.join(map(str, problems[0].field))}: {problems[0].message}", hint=_HINT)
    wide = [path for step in made.steps for path in within.outside(step.owns or [], contract.ownership.paths)]
    if wide:
        raise PlanningFailed(f"{', '.join(wide)[:200]} reaches beyond what the step owns", hint=_HINT)
    return data


def _terms(contract: Contract) -> dict[str, Any]:
    """Smaller steps may delegate in their turn, one level less deep; whether they do, their agent decides."""
    left = contract.permissions.max_delegation_depth - 1
    deeper = {"can_spawn_children": True, "max_delegation_depth": left, "decompose": "never"} if left > 0 else {}
    return {"agent": contract.work.agent, **deeper}


def recovery(contract: Contract, step: StepState) -> dict[str, Any]:
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


def without_recovery(actions: Mapping[str, str]) -> dict[str, str]:
    """The map of actions for a recovery's own run: what would be recovered has failed."""
    return {
        reason: Action.MARK_FAILED.value if action == Action.SPAWN_RECOVERY else action
        for reason, action in actions.items()
    }
