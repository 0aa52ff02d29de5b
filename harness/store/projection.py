"""Rows as a function of the log: one for each event, and what `runs` and `sub_agents` must hold after the last."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from harness.model.events import Envelope, canonical
from harness.model.state import RunState, StepState

_moving = attrgetter(
    *("state", "final_status", "close_reason", "message", "attempts", "start_point", "commit", "merge_commit"),
    *("kept_ref", "report", "changed_paths", "conflicts"),
)
_told = attrgetter(
    *("status", "goal", "plan_digest", "base", "head", "target", "integration_ref", "exit_code", "landed"),
    *("created_at", "finished_at"),
)


def event_row(envelope: Envelope, epoch: int = 1, payload: str | None = None) -> dict[str, Any]:
    """The row of `events` that holds this envelope; `payload` is its text where it is known."""
    row = envelope.as_dict()
    row["payload"] = canonical(envelope.payload) if payload is None else payload
    row["epoch"] = epoch
    return row


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


def end_of_log(state: RunState) -> dict[str, Any]:
    """What every fact changes in the row of the run."""
    return {"run_id": state.run_id, "last_seq": state.last_seq, "last_hash": state.last_hash}


def only_grown(before: RunState, after: RunState) -> bool:
    """Whether the end of the log is all that changed in the row of the run: most facts are about a step."""
    unchanged: bool = _told(before) == _told(after)
    return unchanged


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
        "changed_paths_json": canonical(step.changed_paths) if step.changed_paths else "[]",
        "conflicts_json": canonical(step.conflicts) if step.conflicts else "[]",
    }


def sub_agent_rows(state: RunState) -> list[dict[str, Any]]:
    """Every sub-agent of the run, superseded ones too."""
    return [
        fixed_columns(state.run_id, step) | moving_columns(step) for step in (*state.superseded, *state.steps.values())
    ]


def touched(old: RunState, envelope: Envelope, new: RunState) -> Iterator[tuple[StepState | None, StepState]]:
    """The sub-agents whose row one event changed or created, each before and after; no other step's than its own."""
    if new.steps is old.steps:
        return
    for task in new.steps if envelope.task_id is None else (envelope.task_id,):
        before, after = old.steps.get(task), new.steps[task]
        if before is None or before.sub_agent_id != after.sub_agent_id:
            yield None, after
        elif before is not after and _moving(before) != _moving(after):
            yield before, after
