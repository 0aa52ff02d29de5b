"""Rows as a function of the log: one for each event, and what `runs` and `sub_agents` must hold after the last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.model.events import Envelope, canonical
from harness.model.state import RunState, StepState


def event_row(envelope: Envelope, epoch: int = 1) -> dict[str, Any]:
    """The row of `events` that holds this envelope."""
    return envelope.as_dict() | {"payload": canonical(envelope.payload), "epoch": epoch}


def run_row(state: RunState) -> dict[str, Any]:
    return {
        "run_id": state.run_id,
        "status": str(state.status),
        "goal": state.goal,
        "plan_digest": state.plan_digest,
        "base": state.base,
        "head": state.head,
        "target": state.target,
        "integration_ref": state.integration_ref,
        "exit_code": state.exit_code,
        "landed": state.landed,
        "created_at": state.created_at,
        "finished_at": state.finished_at,
        "last_seq": state.last_seq,
        "last_hash": state.last_hash,
    }


def fixed_columns(run_id: str, step: StepState) -> dict[str, Any]:
    """What a sub-agent is from its creation on, the contract included."""
    return {
        "sub_agent_id": step.sub_agent_id,
        "run_id": run_id,
        "step_idx": step.step_idx,
        "task_id": step.task_id,
        "step_id": step.step_id,
        "title": step.title,
        "context_json": canonical(step.contract),
    }


def moving_columns(step: StepState) -> dict[str, Any]:
    """What the lifecycle changes."""
    return {
        "sub_agent_id": step.sub_agent_id,
        "state": str(step.state),
        "final_status": step.final_status,
        "close_reason": step.close_reason,
        "message": step.message,
        "attempts": step.attempts,
        "start_point": step.start_point,
        "commit_id": step.commit,
        "merge_commit": step.merge_commit,
        "kept_ref": step.kept_ref,
        "report_path": step.report,
        "changed_paths_json": canonical(step.changed_paths),
        "conflicts_json": canonical(step.conflicts),
    }


def sub_agent_rows(state: RunState) -> list[dict[str, Any]]:
    """Every sub-agent of the run, superseded ones too."""
    return [
        fixed_columns(state.run_id, step) | moving_columns(step) for step in (*state.superseded, *state.steps.values())
    ]


def touched(old: RunState, envelope: Envelope, new: RunState) -> Iterator[StepState]:
    """The sub-agents that one event changed or created; an event about a step changes no other one."""
    if new.steps is old.steps:
        return iter(())
    tasks = new.steps if envelope.task_id is None else (envelope.task_id,)
    return (new.steps[task] for task in tasks if new.steps[task] is not old.steps.get(task))
