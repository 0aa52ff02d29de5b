"""Nodes for a run as a whole: a goal becomes a plan, results are looked at, and the run gets its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.engine import create, finish, reports
from harness.engine.context import Context
from harness.errors import EnvironmentProblem, ModelFailed, PlanningFailed
from harness.model import events as ev
from harness.model import limits
from harness.model.ids import CommitId, TaskId
from harness.model.plan import Plan
from harness.orchestrator import model_session
from harness.orchestrator.run import Run

if TYPE_CHECKING:
    from harness.orchestrator.thinking.bounds import Bounds
    from harness.orchestrator.thinking.results import Result


async def plan(run: Run, _task: None = None) -> None:
    """initial_planner: a goal becomes a plan, and the plan and its sub-agents one transaction; never half-started.

    Without a valid plan the run waits: nothing was started, and a resume asks again.
    """
    ctx, state = run.ctx, run.ctx.journal.state
    asking = model_session.open_session(ctx, None)
    if asking is None:
        raise EnvironmentProblem(
            "no language model is configured",
            hint="set ORCHESTRIX_MODEL to openai:NAME, anthropic:NAME or scripted:FILE, then resume",
        )
    from harness.orchestrator.thinking import planner  # noqa: PLC0415 - most runs begin with a plan

    repository = await ctx.offload(model_session.survey, ctx.parts.vcs, CommitId(state.head))
    context = state.missing or str(ctx.options.planning.get("context", ""))
    try:
        planned = await planner.plan(asking, state.goal, _bounds(ctx), repository=repository, context=context)
    except (PlanningFailed, ModelFailed) as error:
        ctx.journal.append(ev.RunWaiting(cause="planning", message=error.message, tasks=[]))
    else:
        _adopt(ctx, planned.loaded.plan, partial=planned.partial)


def _bounds(ctx: Context) -> Bounds:
    from harness.orchestrator.thinking.bounds import Bounds  # noqa: PLC0415 - as above

    terms = ctx.options.planning
    return Bounds(
        agents=tuple(terms["agents"]),
        tools=tuple(terms["tools"]),
        checks=tuple(terms["checks"]),
        max_steps=int(terms["max_steps"]),
        timeout_ms=terms.get("timeout_ms"),
        retries=terms.get("retries"),
    )


def _adopt(ctx: Context, made: Plan, *, partial: bool) -> None:
    """Steps of a later round stand on all that is integrated by now."""
    state = ctx.journal.state
    first, origin = len(state.steps), state.head if state.rounds else None
    data = made.model_dump(mode="json", by_alias=True, exclude_unset=True)
    created = [
        create.subagent(
            made, ctx.run_id, idx, ctx.options.sandbox, origin=origin, shift=first, personas=ctx.options.personas
        )
        for idx in range(len(made.steps))
    ]
    ctx.journal.append(ev.PlanAdopted(plan=data, partial=partial, round=len(state.rounds) + 1), *created)
    ctx.adopt_plan()


async def classify(run: Run, _task: None = None) -> None:
    """classifier: whether the goal needs another plan when all tasks of this one are closed."""
    from harness.orchestrator.thinking import classify as question  # noqa: PLC0415 - only a run with a goal asks

    ctx, state = run.ctx, run.ctx.journal.state
    found = await question.classify(
        model_session.open_session(ctx, None),
        state.goal,
        _results(ctx),
        partial=state.partial,
        rounds_left=limits.PLANNING_ROUNDS - len(state.rounds),
    )
    ctx.journal.append(ev.WorkClassified(more_work=found.more_work, reasons=list(found.reasons), missing=found.missing))


async def finalize(run: Run, _task: None = None) -> None:
    """finalizer: the end of the run, when every task is closed, and the one answer that sums it up."""
    await finish.finish(run.ctx, await _response(run))


async def _response(run: Run) -> str:
    """A goal is answered; a plan needs no answer."""
    if not run.policies.plans:
        return ""
    from harness.orchestrator.thinking import synthesis  # noqa: PLC0415 - as above

    ctx = run.ctx
    made = await synthesis.synthesise(model_session.open_session(ctx, None), ctx.journal.state.goal, _results(ctx))
    return made.text


def _results(ctx: Context) -> list[Result]:
    """How the steps of a run ended, with their reports, for the questions that are asked about them."""
    from harness.orchestrator.thinking import results  # noqa: PLC0415 - as above

    found = {}
    for step in ctx.journal.state.ordered():
        path = reports.archive(ctx, TaskId(step.task_id))
        if path.is_file():
            found[step.task_id] = path.read_text(encoding="utf-8", errors="replace")
    return results.of_run(ctx.journal.state, found)
