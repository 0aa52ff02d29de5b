"""The smaller steps that an agent asked for: data from outside, checked like any plan and against its contract. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from harness.config import plan_checks
from harness.errors import PlanningFailed
from harness.model import within
from harness.model.contract import Contract
from harness.model.plan import Plan
from harness.model.schedule import schedule


def plan(asked: dict[str, Any], contract: Contract) -> dict[str, Any]:
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


_HINT = "the agent asked for smaller steps that cannot be run"
