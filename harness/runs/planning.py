"""From a goal to a plan that a person can read, change and run."""

from __future__ import annotations

from pathlib import Path

from harness.engine import event_loop, reports
from harness.errors import EnvironmentProblem, UsageError
from harness.model import limits
from harness.model.contract import DEFAULT_TOOLS
from harness.model.late import dataclass
from harness.orchestrator.model_session import survey
from harness.orchestrator.thinking import planner
from harness.orchestrator.thinking.asking import Asking
from harness.orchestrator.thinking.bounds import Bounds
from harness.orchestrator.thinking.planner import Planned
from harness.wiring import Project

DEFAULT_AGENT = "builtin"
_NEED_MORE = ("actions", "command")


@dataclass(frozen=True, slots=True)
class Terms:
    """What a person sets for a planned run: agents on offer, commands that every step must pass, size, further text."""

    agents: tuple[str, ...] = (DEFAULT_AGENT,)
    checks: tuple[str, ...] = ()
    max_steps: int = limits.PLANNED_STEPS
    context: str = ""


def bounds(project: Project, terms: Terms) -> Bounds:
    """The bounds of a plan; raises EnvironmentProblem for an agent that does not exist, before a model is asked."""
    known = project.agents
    for name in terms.agents:
        if name in _NEED_MORE:
            raise UsageError(f"the agent {name} needs more than a goal", hint="name one that works from a description")
        found = known.available(name)
        if not found.usable:
            raise EnvironmentProblem(
                f"agent {name!r} is not available: {found.detail}",
                hint=f"see `orchestrix agents`; known are {', '.join(known.names)}",
            )
    settings = project.settings
    return Bounds(
        agents=terms.agents,
        tools=DEFAULT_TOOLS,
        checks=terms.checks,
        max_steps=terms.max_steps,
        timeout_ms=settings.timeout_ms if settings.timeout_ms != limits.ATTEMPT_TIMEOUT_MS else None,
        retries=settings.retries or None,
    )


def plan(project: Project, goal: str, terms: Terms, base: str | None) -> Planned:
    """Asks the configured model; raises EnvironmentProblem without one, PlanningFailed and ModelFailed."""
    within = bounds(project, terms)
    asking = Asking(project.model, timeout_ms=project.settings.model_timeout_ms)
    vcs = project.repository
    repository = survey(vcs, vcs.resolve(base or "HEAD"))
    return event_loop.run(planner.plan(asking, goal, within, repository=repository, context=terms.context))


def refuse_taken(path: Path, *, force: bool) -> None:
    """Said before a model is paid, too."""
    if not force and (path.exists() or path.is_symlink()):
        raise UsageError(f"{path} exists already", hint="name another file, or give --force")


def save(planned: Planned, path: Path, *, force: bool) -> None:
    """The plan as a file, whole or not at all."""
    refuse_taken(path, force=force)
    reports.replace(path, planned.loaded.text.encode(), mode=reports.SHARED)
