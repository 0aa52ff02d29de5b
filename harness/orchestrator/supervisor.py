"""The supervisor of a run: judges every routing decision by the rules of hierarchical execution; it only reads.

A decision that one of them forbids is not carried out: it is logged as a safe stop (`STOP_GLOBAL` with its
`termination_reason`), and the run is closed. The log of `routing_decision` is the decision trace.
"""

from __future__ import annotations

from harness.engine.context import Context
from harness.model import allowlists, limits, supervision
from harness.model import events as ev
from harness.model.state import RunState, StepState
from harness.model.supervision import Budgets, Verdict
from harness.orchestrator import personas, router
from harness.orchestrator.router import Decision


def budgets(state: RunState) -> Budgets:
    """What the run's settings and plan say; else bounds that no sensible plan comes to."""
    wide = {"max_depth": limits.RUN_DEPTH, "max_steps": limits.RUN_DECISIONS, "max_reentry": limits.RUN_REENTRY}
    return Budgets(**{**wide, **state.bounds})


def judge(ctx: Context, decision: Decision, step: int) -> Verdict:
    """What the decision is, `step` being its number; a stop with a termination where a rule forbids it.

    The end of a run is never one decision too many.
    """
    state, who, node = ctx.journal.state, decision.persona, decision.node
    stop = supervision.off_allowlist(allowlists.of(who, ctx.options.allowlists), who, node, decision.reason)
    if stop is None and node != router.FINALIZER:
        stop = supervision.over_steps(step, budgets(state).max_steps, who, node)
    if stop is None and node == router.INITIAL:
        stop = supervision.over_reentry(len(state.rounds) + 1, budgets(state).max_reentry, who, node)
    if stop is None and node in (router.SPAWN, router.NESTED):
        stop = _call(ctx, ctx.journal.state.steps[decision.task or ""], decision)
    return stop or Verdict(_kind(ctx, node), who, node, decision.reason)


def _call(ctx: Context, step: StepState, decision: Decision) -> Verdict | None:
    """A nested run is a subgraph call, one level deeper; what a task spawns again is the same subgraph."""
    within, name = budgets(ctx.journal.state), f"step {step.task_id}"
    visits = step.spawns + (decision.node == router.SPAWN)
    return supervision.over_depth(ctx.depth + 1, within.max_depth, decision.persona, name) or supervision.over_reentry(
        visits, within.max_reentry, decision.persona, name
    )


def _kind(ctx: Context, node: str) -> supervision.DecisionKind:
    if node == router.FINALIZER:
        return supervision.end_of_level(ctx.depth)
    return "SUBGRAPH" if node == router.NESTED else "NODE"


def inherited(state: RunState) -> Verdict | None:
    """A safe stop in a nested run ends the run above it, too."""
    for step in state.steps.values():
        reason = supervision.TERMINATIONS.get(step.child_reason or "")
        if reason is not None and not step.done:
            why = f"run {step.last_child} stopped: {step.message}"
            return Verdict("STOP_GLOBAL", personas.PARENT, router.FINALIZER, why, reason)
    return None


def decided(ctx: Context, decision: Decision, verdict: Verdict, step: int) -> ev.RoutingDecision:
    """The fact of a decision that is carried out."""
    return ev.RoutingDecision(
        task=decision.task,
        chosen_node=decision.node,
        reason=decision.reason,
        persona=decision.persona,
        decision_kind=verdict.kind,
        depth=ctx.depth,
        step=step,
    )


def stopped(ctx: Context, stop: Verdict) -> ev.RoutingDecision:
    """The fact of a safe stop."""
    return ev.RoutingDecision(
        task=None,
        chosen_node=router.FINALIZER,
        reason=stop.reason,
        persona=stop.supervisor or personas.PARENT,
        decision_kind=stop.kind,
        depth=ctx.depth,
        step=ctx.journal.state.decisions + 1,
        termination_reason=stop.termination,
    )
