"""What the orchestrator's facts change in the state; part of `state.evolve`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.errors import Exit, IllegalTransition
from harness.model import events as ev
from harness.model import usage
from harness.model.lifecycle import RunStatus, State
from harness.model.supervision import BOUNDS
from harness.model.value import evolved

if TYPE_CHECKING:
    from harness.model.state import RunState


def _decided(state: RunState, fact: ev.RoutingDecision, _ts: str) -> RunState:
    state = evolved(state, decisions=state.decisions + 1)
    if fact.termination_reason is not None:
        return evolved(state, cancelling=fact.termination_reason)
    if fact.task is None:
        return evolved(state, decided=fact.chosen_node)
    return _with(state, fact.task, decided=fact.chosen_node)


def _again(state: RunState, fact: ev.TaskRetryScheduled, _ts: str) -> RunState:
    return _with(state, fact.task, decided=None, next_attempt_at=fact.next_attempt_at, pause_ms=fact.pause_ms)


def _refused(state: RunState, fact: ev.IntegrationRefused, _ts: str) -> RunState:
    if state.steps[fact.task].state is not State.WAITING_FOR_MERGE:
        raise IllegalTransition(f"task {fact.task} is not parked: it cannot be refused")
    return _with(
        state,
        fact.task,
        decided=None,
        refused=True,
        last_reason=fact.reason,
        last_paths=tuple(fact.paths),
        message=fact.message,
    )


def _escalated(state: RunState, fact: ev.TaskEscalated, _ts: str) -> RunState:
    return _with(state, fact.task, decided=None, escalated=True)


def _approved(state: RunState, fact: ev.TaskApproved, ts: str) -> RunState:
    step = _asked(state, fact.task)
    return _with(state, fact.task, escalated=False, granted=step.granted + 1, next_attempt_at=ts, pause_ms=0)


def _rejected(state: RunState, fact: ev.TaskRejected, _ts: str) -> RunState:
    _asked(state, fact.task)
    return _with(state, fact.task, escalated=False, rejected=True)


def _analyzed(state: RunState, fact: ev.ComplexityAnalyzed, _ts: str) -> RunState:
    tools = tuple(fact.recommended_tools) or state.steps[fact.task].recommended_tools
    return _with(
        state,
        fact.task,
        decided=None,
        analysis=fact.decision,
        recovering=fact.recovery,
        recommended_tools=tools,
    )


def _spawned(state: RunState, fact: ev.SubagentSpawned, _ts: str) -> RunState:
    spawns = state.steps[fact.task].spawns + 1
    return _with(
        state,
        fact.task,
        decided=None,
        spawns=spawns,
        child_run=fact.child_run,
        last_child=fact.child_run,
        child_plan=fact.plan,
    )


def _returned(state: RunState, fact: ev.SubagentReturned, _ts: str) -> RunState:
    asked, decisions = usage.total([state.asked, fact.told]), state.decisions + int(fact.usage.get("decisions", 0))
    state = evolved(state, asked=asked, decisions=decisions)
    return _with(
        state,
        fact.task,
        decided=None,
        child_status=fact.status,
        child_reason=fact.reason,
        child_head=fact.head,
        message=fact.message,
    )


def _paid(state: RunState, fact: ev.ModelAnswered | ev.ModelGaveUp, _ts: str) -> RunState:
    return evolved(state, asked=usage.total([state.asked, usage.of(fact)]))


def _adopted(state: RunState, fact: ev.PlanAdopted, _ts: str) -> RunState:
    steps = [*state.plan.get("steps", ()), *fact.plan["steps"]]
    return evolved(
        state,
        decided=None,
        plan={**fact.plan, "goal": state.goal, "steps": steps},
        rounds=(*state.rounds, fact.plan),
        partial=fact.partial,
        more_work=None,
        missing="",
    )


def _classified(state: RunState, fact: ev.WorkClassified, _ts: str) -> RunState:
    return evolved(state, decided=None, more_work=fact.more_work, missing=fact.missing)


def _finalized(state: RunState, fact: ev.WorkflowFinalized, _ts: str) -> RunState:
    return evolved(state, final_response=fact.final_response)


def _waiting(state: RunState, fact: ev.RunWaiting, _ts: str) -> RunState:
    asked = tuple(fact.tasks) if fact.cause == "approval" else ()
    return evolved(
        state, status=RunStatus.WAITING, exit_code=Exit.WAITING, waiting=fact.message, waiting_tasks=asked, decided=None
    )


def _budget(state: RunState, fact: ev.BudgetChanged, _ts: str) -> RunState:
    bounds = {name: int(amount) for name, amount in fact.budget.items() if name in BOUNDS}
    budget = {name: amount for name, amount in fact.budget.items() if name not in BOUNDS}
    return evolved(state, budget={**state.budget, **budget}, bounds={**state.bounds, **bounds})


def _asked(state: RunState, task: str) -> Any:
    step = state.steps.get(task)
    if step is None or not step.escalated:
        raise IllegalTransition(f"task {task} waits for nobody's decision")
    return step


def _with(state: RunState, task: str | None, **changes: Any) -> RunState:
    step = state.steps.get(task or "")
    if step is None or step.done:
        raise IllegalTransition(f"run {state.run_id} has no open task {task}")
    return evolved(state, steps=state.steps | {step.task_id: evolved(step, **changes)})


HANDLERS: dict[type, Callable[[RunState, Any, str], RunState]] = {
    ev.RoutingDecision: _decided,
    ev.TaskRetryScheduled: _again,
    ev.IntegrationRefused: _refused,
    ev.TaskEscalated: _escalated,
    ev.TaskApproved: _approved,
    ev.TaskRejected: _rejected,
    ev.ComplexityAnalyzed: _analyzed,
    ev.SubagentSpawned: _spawned,
    ev.SubagentReturned: _returned,
    ev.ModelAnswered: _paid,
    ev.ModelGaveUp: _paid,
    ev.PlanAdopted: _adopted,
    ev.WorkClassified: _classified,
    ev.WorkflowFinalized: _finalized,
    ev.RunWaiting: _waiting,
    ev.BudgetChanged: _budget,
}
