"""A run as machines see it (`run --json`, `status --json`): names and shapes are stable."""

from __future__ import annotations

from typing import Any

from harness.model.ids import RefName
from harness.model.lifecycle import RunStatus
from harness.model.state import RunState, StepState


def run(state: RunState, *, held: bool) -> dict[str, Any]:
    """The `data` of a run; one that nobody drives although it has not ended is `waiting` for a resume."""
    status = RunStatus.WAITING if state.status is RunStatus.RUNNING and not held else state.status
    return {
        "run_id": state.run_id,
        "status": status.value,
        "goal": state.goal,
        "base": state.base,
        "head": state.head,
        "integration_ref": state.integration_ref,
        "target": state.target and RefName(state.target).short,
        "landed": state.landed,
        "exit_code": state.exit_code,
        "ended": state.ended,
        "created_at": state.created_at,
        "finished_at": state.finished_at,
        "usage": state.usage,
        "waiting": state.waiting,
        "parent_run": state.parent_run,
        "final_response": state.final_response,
        "steps": [step(item, state.run_id) for item in state.ordered()],
    }


def step(item: StepState, run_id: str) -> dict[str, Any]:
    done = item.done or item.report is not None
    return {
        "idx": item.step_idx,
        "id": item.step_id,
        "task_id": item.task_id,
        "title": item.title,
        "sub_agent_id": item.sub_agent_id,
        "state": item.state.value,
        "final_status": item.final_status,
        "close_reason": item.close_reason,
        "message": item.message,
        "attempts": item.attempts,
        "escalated": item.escalated,
        "nested_run": item.last_child,
        "next_attempt_at": item.next_attempt_at if not item.done else None,
        "start_point": item.start_point,
        "commit": item.commit,
        "merge_commit": item.merge_commit,
        "kept_ref": item.kept_ref,
        "report": f".orchestrix/local/runs/{run_id}/step-{item.task_id}-result.md" if done else None,
        "changed_paths": list(item.changed_paths),
        "conflicts": [conflict["path"] for conflict in item.conflicts],
        "usage": dict(item.usage),
    }


def next_step(state: RunState) -> str:
    """What a person can do about a run that waits."""
    asked = state.waiting_tasks
    if asked:
        return f"orchestrix approve {state.run_id} {asked[0]}, or orchestrix reject {state.run_id} {asked[0]}"
    more = " --budget NAME=VALUE" if state.rounds else ""
    return f"orchestrix resume {state.run_id}{more}"
