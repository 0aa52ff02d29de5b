"""The router: a pure function from the state of a run, its policies and the time to everything that is next.

The priority: finalization, failures, integration, execution. A task that a node already has is not routed again, so
the same log always gives the same decisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

from harness.errors import IllegalTransition
from harness.model import budget
from harness.model import events as ev
from harness.model.ids import TaskId
from harness.model.lifecycle import State
from harness.model.state import RunState, StepState
from harness.orchestrator import personas
from harness.orchestrator.board import Board, Policies

INITIAL = "initial_planner"
CLASSIFIER = "classifier"
EXECUTOR = "task_executor"
ANALYZER = "complexity_analyzer"
SPAWN = "spawn_subAgent"
NESTED = "subAgent_executor"
REJOIN = "subAGENT_finalizer"
UPDATER = "task_updater"
PLANNER = "task_planner"
FALLBACK = "error_fallback"
FINALIZER = "finalizer"

_WORKING = (EXECUTOR, ANALYZER, SPAWN, NESTED, REJOIN)
_UNPARKED = (State.CREATED, State.RUNNING)


class Decision(NamedTuple):
    """Which node is next, for which task (None: the run as a whole), in which role, and why."""

    node: str
    reason: str
    task: str | None
    persona: str


def route(state: RunState, policies: Policies, now: datetime) -> list[Decision]:
    """Everything that can be done now, most urgent first; empty while there is only to wait."""
    return routed(Board.of(state, policies), state, now)


def routed(board: Board, state: RunState, now: datetime) -> list[Decision]:
    """The same, on a board that somebody keeps."""
    if state.decided is not None:
        return []
    if not board.open:
        return [_whole(state, board.policies)]
    urgent = [*_failures(board), *_integration(board)]
    return urgent if over_budget(state, now) else [*urgent, *_execution(board, now)]


def _whole(state: RunState, policies: Policies) -> Decision:
    """With no task open: plan, look whether more is to be planned, or end."""
    if policies.plans and (not state.rounds or state.more_work):
        reason = "the goal has no plan yet" if not state.rounds else "the goal needs more work"
        return Decision(INITIAL, reason, None, personas.PLANNER)
    if policies.plans and state.more_work is None:
        return Decision(CLASSIFIER, "every task of this round is closed", None, personas.PLANNER)
    return Decision(FINALIZER, "every task is closed", None, personas.PARENT)


def over_budget(state: RunState, now: datetime) -> str | None:
    """Which budget has ended: nothing new is started then, what is done is still integrated."""
    return budget.ended(state.budget, state.spent, state.last_ts, now) if state.budget else None


def _failures(board: Board) -> Iterator[Decision]:
    """Tasks that must not go on because another one failed, then those whose last attempt failed."""
    for step in board.open.values() if board.failed else board.touched:
        if step.state is State.CREATED and not board.failed:
            continue
        if step.refused and step.decided is None and not step.escalated:
            yield Decision(FALLBACK, f"it was refused: {step.last_reason}", step.task_id, personas.ERROR_FALLBACK)
        if step.state not in _UNPARKED:
            continue
        lost = board.abandoned(step)
        if lost is not None:
            if step.decided != PLANNER:
                yield Decision(PLANNER, lost.message, step.task_id, personas.PARENT)
        elif _failed(step):
            yield Decision(
                FALLBACK, f"attempt {step.attempts} failed: {step.last_reason}", step.task_id, personas.ERROR_FALLBACK
            )


def _failed(step: StepState) -> bool:
    attempted = step.last_reason is not None and not step.ready and step.analysis != "spawn"
    waits = step.escalated or (step.next_attempt_at is not None and not step.rejected)
    return step.decided is None and attempted and not waits


def _integration(board: Board) -> Iterator[Decision]:
    """Results in plan order, each when all before it are closed; what has its outcome already is closed at once."""
    first = next(iter(board.open))
    for step in board.touched:
        if step.state is State.CREATED or step.decided is not None or step.refused:
            continue
        if step.state in (State.COMPLETED, State.FAILED):
            yield Decision(UPDATER, f"it is {step.state}", step.task_id, personas.PARENT)
        elif step.state is State.WAITING_FOR_MERGE and step.step_idx == first:
            yield Decision(
                UPDATER, "it waits for the merge and all before it are closed", step.task_id, personas.PARENT
            )


def _execution(board: Board, now: datetime) -> list[Decision]:
    """As many eligible tasks as there are free places, by explicit priority, then depth, then order."""
    free = board.policies.jobs - sum(step.decided in _WORKING for step in board.touched if step.decided)
    if free <= 0:
        return []
    eligible = (step for step in board.ranked() if _eligible(board, step, now))
    return [_taken_up(board, step) for step in islice(eligible, free)]


def _taken_up(board: Board, step: StepState) -> Decision:
    """A task goes to its executor, unless it is or may be too complex for one agent."""
    persona = personas.RECOVERY if step.recovering else personas.SUBAGENT
    if step.child_status is not None:
        return Decision(REJOIN, f"run {step.child_run} {step.child_status}", step.task_id, persona)
    if step.child_run is not None:
        return Decision(NESTED, f"run {step.child_run} has its tasks", step.task_id, persona)
    if step.analysis == "spawn":
        return Decision(
            SPAWN, "it is to be split" if not step.recovering else "it is to recover", step.task_id, persona
        )
    if step.analysis is None and _may_be_complex(step):
        return Decision(ANALYZER, "it may be too complex for one agent", step.task_id, personas.PLANNER)
    role = personas.ERROR_FALLBACK if step.failed_attempts else board.policies.persona
    return Decision(EXECUTOR, _why(step), step.task_id, role)


def _may_be_complex(step: StepState) -> bool:
    """Whether the contract leaves the question open; most do not."""
    permissions = step.contract.get("permissions", {})
    return bool(permissions.get("can_spawn_children")) and permissions.get("max_delegation_depth", 0) > 0


def _eligible(board: Board, step: StepState, now: datetime) -> bool:
    if step.decided is not None or step.escalated or step.state not in _UNPARKED or _failed(step):
        return False
    return board.stands(step) and board.abandoned(step) is None and wait(step, now) == timedelta()


def wait(step: StepState, now: datetime) -> timedelta:
    """How long the task must still be left alone; never longer than its pause, should the clock have been set back."""
    if step.next_attempt_at is None:
        return timedelta()
    left = datetime.fromisoformat(step.next_attempt_at) - now
    return max(timedelta(), left) if left <= timedelta(milliseconds=step.pause_ms) else timedelta()


def next_due(board: Board, now: datetime) -> timedelta | None:
    """How long until the first paused task may go on; None when no task is paused."""
    pauses = [wait(step, now) for step in board.touched if step.next_attempt_at and step.decided is None]
    return min((pause for pause in pauses if pause), default=None)


def _why(step: StepState) -> str:
    if step.next_attempt_at is not None:
        return f"the pause after attempt {step.attempts} is over"
    return "everything that it needs is parked" if step.state is State.CREATED else "it was interrupted"


def standstill(state: RunState, now: datetime, nested: Mapping[TaskId, RunState]) -> ev.RunWaiting:
    """Why the run stops with open tasks, as a fact: a person must decide, or allow more; raises IllegalTransition where nothing explains the standstill."""
    asked = [step.task_id for step in state.ordered() if step.escalated]
    asked += [task for child in nested.values() for task in child.waiting_tasks]
    if asked:
        return ev.RunWaiting(cause="approval", message=f"step {', '.join(asked)} needs a decision", tasks=asked)
    over = over_budget(state, now) or next((child.waiting for child in nested.values()), None)
    if over is not None:
        open_ = [step.task_id for step in state.ordered() if not step.done]
        return ev.RunWaiting(cause="budget", message=over, tasks=open_)
    raise IllegalTransition(f"run {state.run_id} has open steps and nothing is next")
