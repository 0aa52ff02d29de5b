"""From a goal to a finished run: the plan is made inside the run, so that a resume never pays for it twice."""

from __future__ import annotations

import hashlib

from harness.engine import create
from harness.model.plan import Plan
from harness.model.schedule import Schedule
from harness.orchestrator.thinking import planner
from harness.runs import planning, start
from harness.runs.planning import Terms
from harness.runs.start import RunOverrides
from harness.wiring import Project


def request(project: Project, goal: str, terms: Terms, overrides: RunOverrides) -> create.Request:
    """The request, resolved against the repository; raises before anything is made or asked."""
    planner.check_goal(goal)
    bounds = planning.bounds(project, terms)
    _ = project.model
    asked = {
        "agents": list(bounds.agents),
        "tools": list(bounds.tools),
        "checks": [command if isinstance(command, str) else list(command) for command in bounds.checks],
        "max_steps": bounds.max_steps,
        "context": terms.context,
        "timeout_ms": bounds.timeout_ms,
        "retries": bounds.retries,
    }
    branch = start.target(project, overrides)
    return create.Request(
        plan=Plan.model_construct(version=1, goal=goal, steps=[]),
        schedule=Schedule((), (), ()),
        plan_path="",
        plan_digest=hashlib.sha256(goal.encode()).hexdigest(),
        base=start.base(project, None, overrides),
        target=branch,
        target_at=project.repository.read_ref(branch) if branch else None,
        options=start.options(project, {}, overrides, asked),
    )
