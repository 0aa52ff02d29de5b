"""What a run that begins with a goal does beyond one with a plan: it plans first, and it answers at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from harness.engine import create, reports
from harness.engine.context import Context
from harness.engine.journal import Journal
from harness.engine.parts import Parts
from harness.errors import EnvironmentProblem, Exit, PlanningFailed
from harness.model import events as ev
from harness.model.ids import CommitId, RunId, TaskId
from harness.model.lifecycle import RunStatus
from harness.model.state import RunState
from harness.orchestrator import personas
from harness.orchestrator.thinking import bounds, planner, repository_map, results, synthesis
from harness.orchestrator.thinking.asking import Asking, remembered
from harness.orchestrator.thinking.planner import Planned

INITIAL_PLANNER = "initial_planner"


def wants_plan(state: RunState) -> bool:
    """Whether the run was created for a goal and has no plan yet."""
    return bool(state.options.get("planning")) and not state.steps and not state.ended


async def plan(parts: Parts, journal: Journal) -> None:
    """Gives the run its plan and its sub-agents in one transaction; nothing starts before.

    Answers that the log has are not asked for again. A model that gives no valid plan ends the run; one that cannot be
    reached leaves it to be resumed.
    """
    state = journal.state
    log = list(parts.store.events(RunId(state.run_id)))
    if not _decided(log):
        why = "the run has a goal and no plan"
        journal.append(ev.RoutingDecision(task=None, chosen_node=INITIAL_PLANNER, reason=why, persona=personas.PARENT))
    terms = bounds.Terms.from_dict(state.options["planning"])
    asking = Asking(parts.model(), record=journal.append, memory=remembered(log))
    repository = await asyncio.to_thread(repository_map.survey, parts.vcs, CommitId(state.base))
    try:
        made = await planner.plan(
            asking, state.goal, bounds.of_run(terms), repository=repository, context=terms.context
        )
    except PlanningFailed:
        _give_up(journal)
        raise
    journal.append(*_facts(state, made))


def _decided(log: Iterable[ev.Envelope]) -> bool:
    decisions = (envelope.payload for envelope in log if envelope.type == ev.RoutingDecision.type)
    return any(decision["chosen_node"] == INITIAL_PLANNER for decision in decisions)


def _facts(state: RunState, made: Planned) -> list[ev.Fact]:
    loaded = made.loaded
    written = loaded.plan.model_dump(mode="json", by_alias=True, exclude_unset=True)
    facts: list[ev.Fact] = [
        ev.RunPlanned(plan=written, plan_digest=loaded.digest, partial=made.partial, rounds=made.rounds)
    ]
    sandbox = state.options["sandbox"]
    steps = range(len(loaded.plan.steps))
    return [*facts, *(create.subagent(loaded.plan, RunId(state.run_id), idx, sandbox) for idx in steps)]


def _give_up(journal: Journal) -> None:
    journal.append(
        ev.RunFinished(status=RunStatus.FAILED, exit_code=Exit.STEP_FAILED, head=journal.state.head, merged=0, failed=0)
    )


async def answer(ctx: Context) -> None:
    """The final answer of a run that began with a goal, once, from every step's facts and report."""
    state = ctx.journal.state
    if not ctx.options.planning or state.final_response is not None:
        return
    found = {step.task_id: reports.archive(ctx, TaskId(step.task_id)) for step in state.ordered()}
    told = {task: path.read_text(errors="replace") for task, path in found.items() if path.is_file()}
    given = await synthesis.synthesise(_asking(ctx), state.goal, results.of_run(state, told))
    ctx.journal.append(ev.RunAnswered(text=given.text, source=given.source, problems=list(given.problems)))


def _asking(ctx: Context) -> Asking | None:
    """Without a model the facts answer."""
    try:
        model = ctx.parts.model()
    except EnvironmentProblem:
        return None
    return Asking(model, record=ctx.journal.append, memory=remembered(ctx.parts.store.events(ctx.run_id)))
