"""From a goal to a finished run: planned, run and answered under one lease and in one log."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from dataclasses import asdict, replace

from harness.config.plan_file import LoadedPlan
from harness.engine import create, heartbeat, launch, signals
from harness.engine.journal import Journal, Watch
from harness.engine.parts import Parts
from harness.errors import OrchestrixError
from harness.model import events as ev
from harness.model.plan import Plan
from harness.model.schedule import schedule
from harness.model.state import RunState
from harness.orchestrator import goal as goals
from harness.orchestrator.thinking import planner
from harness.orchestrator.thinking.bounds import Terms
from harness.ports import Lease
from harness.runs import planning, start
from harness.runs.start import Wish
from harness.wiring import Project, holder


def request(project: Project, goal: str, terms: Terms, wish: Wish) -> create.Request:
    """A run without steps; raises before anything is made when agents, model or goal are missing."""
    planning.bounds(project, terms)
    planner.check_goal(goal)
    project.model  # noqa: B018 - without one nothing is made
    wanted = start.request(project, _unplanned(goal), wish)
    return replace(wanted, options=replace(wanted.options, planning=asdict(terms)))


def begin(project: Project, wanted: create.Request, wish: Wish, watch: Watch) -> RunState:
    """Runs to the end; raises Interrupted on a signal, with the run left resumable."""
    parts = project.parts()
    who = holder()
    lease = parts.store.acquire(start.new_id(project, wanted, wish), who)
    create.run(parts, lease, wanted)
    return signals.run(carry_on(parts, lease, who, watch))


async def carry_on(parts: Parts, lease: Lease, who: dict[str, object], watch: Watch) -> RunState:
    """From wherever the log says the run is: one that has a goal and no plan is planned first."""
    state = parts.store.state(lease.run_id)
    if goals.wants_plan(state):
        await _planned(parts, lease, state, watch)
    return await launch.carry_on(parts, lease, who, watch)


async def _planned(parts: Parts, lease: Lease, state: RunState, watch: Watch) -> None:
    journal = Journal(parts.store, lease, state, watch)
    try:
        async with heartbeat.beating(journal):
            await goals.plan(parts, journal)
    except BaseException as error:
        with contextlib.suppress(OrchestrixError):
            if isinstance(error, asyncio.CancelledError):
                journal.append(ev.RunCancelled(cause="a signal asked the coordinator to stop"))
            parts.store.release(lease)
        raise


def _unplanned(goal: str) -> LoadedPlan:
    """A plan that is still to be made: its steps are none, and its digest is the goal's."""
    plan = Plan.model_construct(_fields_set={"version", "goal", "steps"}, version=1, goal=goal, steps=[])
    return LoadedPlan(plan, schedule(plan), hashlib.sha256(goal.encode()).hexdigest(), "-", "")
