"""States to route on, written by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from harness.model.lifecycle import State
from harness.model.plan import Plan
from harness.model.schedule import schedule
from harness.model.state import RunState, StepState
from harness.orchestrator.board import Policies

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def plan_of(*steps: dict[str, Any], **fields: Any) -> Plan:
    """Steps that own a file each, unless they say otherwise."""
    filled = [
        {"title": f"step {idx}", "command": ["true"], "owns": [f"{idx}.txt"], **step} for idx, step in enumerate(steps)
    ]
    return Plan.model_validate({"steps": filled, **fields})


def policies(plan: Plan, jobs: int = 4, **fields: Any) -> Policies:
    return Policies(
        order=schedule(plan),
        jobs=jobs,
        priorities=tuple(step.priority for step in plan.steps),
        stop_at_failure=plan.on_failure == "stop",
        **fields,
    )


def step(idx: int, **fields: Any) -> StepState:
    made = StepState(
        sub_agent_id=f"r/{idx}", task_id=str(idx), step_idx=idx, step_id=None, title=f"step {idx}", contract={}
    )
    return replace(made, **fields)


def state_of(*steps: StepState) -> RunState:
    return RunState(run_id="r", steps=MappingProxyType({one.task_id: one for one in steps}))


def closed(idx: int, status: str = "completed") -> StepState:
    return step(idx, state=State.CLOSED, final_status=status)
