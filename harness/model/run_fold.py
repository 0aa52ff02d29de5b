"""What the facts about a run as a whole change in the state; part of `state.evolve`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.errors import Exit, IllegalTransition
from harness.model import events as ev
from harness.model.lifecycle import RunStatus
from harness.model.shared import Shared
from harness.model.value import evolved

if TYPE_CHECKING:
    from harness.model.state import RunState


def _created_run(state: RunState, fact: ev.RunCreated, ts: str) -> RunState:
    if state.last_seq:
        raise IllegalTransition(f"run {state.run_id} exists already")
    return evolved(
        state,
        goal=fact.goal,
        plan=fact.plan,
        rounds=(fact.plan,) if fact.plan.get("steps") else (),
        plan_path=fact.plan_path,
        plan_digest=fact.plan_digest,
        base=fact.base,
        head=fact.base,
        target=fact.target,
        target_at=fact.target_at,
        integration_ref=fact.integration_ref,
        options=fact.options,
        budget=fact.options.get("budget", {}),
        bounds=fact.options.get("bounds", {}),
        parent_run=fact.parent_run,
        parent_task=fact.parent_task,
        within=fact.within,
        created_at=ts,
    )


def _started_run(state: RunState, fact: ev.RunStarted, _ts: str) -> RunState:
    """A new coordinator finds open attempts only where the last one died in them: that is a recovery, not a failure."""
    steps = {
        key: evolved(step, open_attempt=False, recoveries=step.recoveries + 1) if step.open_attempt else step
        for key, step in state.steps.items()
    }
    return evolved(
        state,
        status=RunStatus.RUNNING,
        exit_code=None,
        finished_at=None,
        waiting=None,
        cancelling=None if state.ended else state.cancelling,
        coordinators=fact.epoch,
        decisions=state.decisions if state.exit_code in (None, Exit.WAITING) else 0,  # a person had it begin again
        steps=Shared(steps),
    )


def _plan_changed(state: RunState, fact: ev.PlanChangeAccepted, _ts: str) -> RunState:
    return evolved(state, plan_digest=fact.new_digest)


def _cancelled(state: RunState, fact: ev.RunCancelled, ts: str) -> RunState:
    """A coordinator that was asked to stop closed its attempts: the next one has nothing to recover from."""
    steps = {key: evolved(step, open_attempt=False) for key, step in state.steps.items()}
    return evolved(
        state,
        status=RunStatus.CANCELLED,
        exit_code=None,
        waiting=None,
        cancelling=fact.reason if fact.end else state.cancelling,
        finished_at=ts,
        steps=Shared(steps),
    )


def _finished(state: RunState, fact: ev.RunFinished, ts: str) -> RunState:
    return evolved(
        state,
        status=RunStatus(fact.status),
        exit_code=fact.exit_code,
        head=fact.head,
        finished_at=ts,
        decided=None,
        more_work=None,
    )


def _moving(state: RunState, fact: ev.LandingStarted | ev.UndoStarted, _ts: str) -> RunState:
    undo = isinstance(fact, ev.UndoStarted)
    return evolved(state, landing={"target": fact.target, "old": fact.old, "new": fact.new, "undo": undo})


def _stopped(state: RunState, _fact: ev.LandingStopped, _ts: str) -> RunState:
    return evolved(state, landing=None)


def _landed(state: RunState, fact: ev.RunLanded, ts: str) -> RunState:
    made = {"target": fact.target, "old": fact.old, "new": fact.new, "at": ts}
    others = tuple(item for item in state.landings if item["target"] != fact.target)
    return evolved(state, landed=fact.new, target=fact.target, landings=(*others, made), landing=None)


def _undone(state: RunState, fact: ev.LandingUndone, _ts: str) -> RunState:
    left = tuple(item for item in state.landings if item["target"] != fact.target)
    return evolved(state, landed=left[-1]["new"] if left else None, landings=left, landing=None)


HANDLERS: dict[type, Callable[[RunState, Any, str], RunState]] = {
    ev.RunCreated: _created_run,
    ev.RunStarted: _started_run,
    ev.PlanChangeAccepted: _plan_changed,
    ev.RunCancelled: _cancelled,
    ev.RunFinished: _finished,
    ev.LandingStarted: _moving,
    ev.UndoStarted: _moving,
    ev.LandingStopped: _stopped,
    ev.RunLanded: _landed,
    ev.LandingUndone: _undone,
}
