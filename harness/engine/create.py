"""A plan becomes a run: contracts are persisted before anything starts."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from harness.engine.options import Options
from harness.engine.parts import Parts
from harness.errors import UsageError
from harness.model import events as ev
from harness.model import nesting, rounds
from harness.model.contract import Caps
from harness.model.ids import CommitId, RefName, RunId, integration_branch, sub_agent_id
from harness.model.late import dataclass
from harness.model.nesting import Nest
from harness.model.personas import PERFORM_TASK, SUBAGENT, enrolled
from harness.model.plan import Plan
from harness.model.schedule import Schedule
from harness.model.state import RunState
from harness.ports import Lease


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for, resolved."""

    plan: Plan
    schedule: Schedule
    plan_path: str
    plan_digest: str
    base: CommitId
    target: RefName | None
    options: Options
    nest: Nest | None = None
    target_at: CommitId | None = None


def new_run_id(now: datetime, request: Request, *, fixed: bool) -> RunId:
    """Sorts by time; with a fixed clock it depends on plan and base alone."""
    seed = f"{request.plan_digest}:{request.base}".encode() if fixed else secrets.token_bytes(16)
    return RunId(f"{now:%Y%m%d-%H%M%S}-{hashlib.sha256(seed).hexdigest()[:6]}")


def run(parts: Parts, lease: Lease, request: Request) -> None:
    """Logs the run and every sub-agent with its contract, in one transaction, then makes the integration ref."""
    run_id = lease.run_id
    facts: list[ev.Fact] = [
        ev.RunCreated(
            goal=request.plan.goal,
            plan=request.plan.model_dump(mode="json", by_alias=True, exclude_unset=True),
            plan_path=request.plan_path,
            plan_digest=request.plan_digest,
            base=request.base,
            target=request.target,
            target_at=request.target_at,
            integration_ref=integration_branch(run_id),
            options=request.options.as_dict(),
            parent_run=request.nest.parent_run if request.nest else None,
            parent_task=request.nest.parent_task if request.nest else None,
            within=request.nest.within.model_dump(mode="json") if request.nest else None,
        )
    ]
    if request.plan.overlap == "allow" and request.schedule.overlaps:
        facts.append(ev.OverlapAllowed(pairs=[list(pair) for pair in request.schedule.overlaps]))
    facts += [
        subagent(
            request.plan, run_id, idx, request.options.sandbox, nest=request.nest, personas=request.options.personas
        )
        for idx in range(len(request.plan.steps))
    ]
    parts.store.append(lease, facts)


def successor(state: RunState, idx: int) -> ev.SubagentCreated:
    """A new sub-agent for a step that was closed as failed, on top of all that is merged by now."""
    return subagent(
        rounds.plan(state.goal, state.rounds),
        RunId(state.run_id),
        idx,
        str(state.options.get("sandbox", "auto")),
        generation=2 + sum(step.step_idx == idx for step in state.superseded),
        origin=state.head,
        nest=Nest.of(state),
        personas=state.options.get("personas"),
    )


def subagent(
    plan: Plan,
    run_id: RunId,
    idx: int,
    sandbox: str,
    *,
    generation: int = 1,
    origin: str | None = None,
    nest: Nest | None = None,
    shift: int = 0,
    personas: Mapping[str, Mapping[str, Any]] | None = None,
) -> ev.SubagentCreated:
    """The fact that creates a step's sub-agent; a retried step gets a new sub-agent under the same contract.

    `shift` is how many steps the run had before this plan was made for it; `personas` are the caps that the run's options hold.
    """
    if sandbox not in ("auto", "bwrap", "none"):
        raise UsageError(f"unknown sandbox {sandbox!r}", hint="use auto, bwrap or none")
    task = nesting.task_id(nest.parent_task if nest else None, idx + shift)
    name = sub_agent_id(run_id, task) + ("" if generation == 1 else f"~{generation}")
    contract = nesting.contract(plan, idx, run_id, sandbox, nest)  # type: ignore[arg-type]  # checked above
    if nest is not None:
        role = nest.within.persona or SUBAGENT  # whose caps bind `within` already
        contract = contract.model_copy(update={"persona": role, "caps": nest.within.caps})
    else:
        contract = enrolled(
            contract, PERFORM_TASK, {name: Caps.model_validate(dict(caps)) for name, caps in (personas or {}).items()}
        )
    return ev.SubagentCreated(
        sub_agent_id=name,
        step_idx=idx + shift,
        task=task,
        title=plan.steps[idx].title,
        step_id=plan.steps[idx].id,
        contract=contract.model_dump(mode="json"),
        origin=origin,
    )
