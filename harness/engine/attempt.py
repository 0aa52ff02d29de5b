"""One try at one step: workspace, setup, agent, snapshot, verdict."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from harness.checks import account as accounts
from harness.checks.account import Account
from harness.engine import gate, judgement, keep, race, tripwire, workspaces
from harness.engine.context import Context
from harness.engine.execute import StepExecute
from harness.errors import ContractViolation, EnvironmentProblem, SnapshotFailed, ToolFailed
from harness.model import duration, limits, personas
from harness.model import events as ev
from harness.model import usage as usages
from harness.model.changes import Snapshot, Workspace
from harness.model.contract import Contract
from harness.model.ids import TaskId
from harness.model.late import dataclass
from harness.model.verdict import Failure, Reason
from harness.ports import Job, Outcome
from harness.tools.permission import allows


@dataclass(slots=True)
class _Try:
    """What is known of a running attempt."""

    ctx: Context
    task: TaskId
    number: int
    contract: Contract
    execute: StepExecute
    outcome: Outcome = field(default_factory=Outcome)
    account: Account = field(default_factory=Account)
    taken: Snapshot | None = None
    candidate: int | None = None


async def run(ctx: Context, task: TaskId, previous: str | None, started: ev.SubagentStarted | None) -> None:
    """Does one attempt and logs its verdict. Cancelled, it keeps the work and goes on cancelling.

    `started` is what a first attempt has still to log: that goes with the intent to make the workspace.
    """
    contract = ctx.contract(task)
    if ctx.step(task).failed_attempts and not ctx.options.replay:
        contract = personas.in_fallback(contract)
    number = ctx.step(task).attempts + 1
    began = time.monotonic()
    workspace = await workspaces.for_attempt(ctx, task, number, started=started)
    ctx.note(
        task,
        ev.SubagentAttempt,
        attempt=number,
        agent=", ".join(contract.work.candidates) or contract.work.agent,
        sandbox=ctx.parts.processes.name,
    )
    execute = StepExecute(ctx, task, number, workspace, contract, f"step-{task}-attempt-{number}")
    this = _Try(ctx, task, number, contract, execute)
    if contract.work.candidates and not ctx.options.replay:
        this, failure = await _raced(this, previous)
    else:
        failure = await _alone(this, previous)
    _finish(this, failure, int((time.monotonic() - began) * 1000))
    if not ctx.step(task).ready and not ctx.options.keep:
        ctx.journal.append(await workspaces.remove(ctx, task, this.execute.workspace.path))


async def _alone(this: _Try, previous: str | None) -> Failure | None:
    """The verdict on the only candidate; work that fails is kept before anybody hears of the failure."""
    try:
        failure = await _judged(this, previous)
        if failure is not None and this.taken is not None:
            await keep.work(this.ctx, this.task, this.number, this.taken, failure.reason)
    except asyncio.CancelledError:
        await keep.interrupted(this.ctx, this.task, this.number, this.execute.workspace)
        raise
    return failure


async def _raced(first: _Try, previous: str | None) -> tuple[_Try, Failure | None]:
    """The best of several candidates; what all of them used is what the attempt used."""
    ctx, task, number, contract = first.ctx, first.task, first.number, first.contract
    tries: dict[int, _Try] = {}

    async def contend(candidate: int, agent: str, workspace: Workspace) -> race.Judged:
        own = contract.model_copy(update={"work": contract.work.model_copy(update={"agent": agent})})
        execute = StepExecute(ctx, task, number, workspace, own, f"{first.execute.log_name}-candidate-{candidate}")
        this = tries[candidate] = _Try(ctx, task, number, own, execute, candidate=candidate)
        failure = await _judged(this, previous)
        return race.Judged(candidate, agent, workspace, this.taken, failure, this.outcome.usage)

    best = await race.Race(ctx, task, number, contract.work.candidates, first.execute.workspace, contend).run()
    chosen = tries[best.number]
    used = usages.together([this.outcome.usage for this in tries.values()], chosen.outcome.usage)
    chosen.outcome = replace(chosen.outcome, usage=used)
    tampered = None if best.failure else tripwire.verdict(ctx, task)  # by a candidate that ended after this one
    if tampered is not None and best.taken is not None:
        await keep.work(ctx, task, number, best.taken, tampered.reason, candidate=best.number)
    return chosen, tampered or best.failure


async def _judged(this: _Try, previous: str | None) -> Failure | None:
    """The work, its snapshot and the verdict on it; a workspace that is taken away meanwhile is the step's failure."""
    try:
        return await _judged_work(this, previous)
    except (EnvironmentProblem, OSError) as error:
        if not workspaces.vanished(this.execute.workspace.path, error):
            raise
        return await _lost(this)


async def _lost(this: _Try) -> Failure:
    with this.ctx.flying(this.task):
        await tripwire.look(this.ctx)
    words = f"step {this.task} removed or replaced its own workspace: nothing can be taken from it"
    return tripwire.verdict(this.ctx, this.task) or Failure(Reason.AGENT_FAILED, words)


async def _judged_work(this: _Try, previous: str | None) -> Failure | None:
    ctx, task, workspace = this.ctx, this.task, this.execute.workspace
    with ctx.flying(task):
        this.outcome = await _work(this, previous)
        await tripwire.look(ctx)
    if not workspaces.stands(workspace.path):
        return await _lost(this)
    try:
        this.taken = await keep.snapshot(ctx, task, this.number, workspace, candidate=this.candidate)
    except SnapshotFailed as failed:
        reason = Reason.LIMIT_EXCEEDED if failed.details["overtime"] else Reason.CONTENT_REFUSED
        return tripwire.verdict(ctx, task) or this.outcome.failure or Failure(reason, failed.message, hint=failed.hint)
    if not workspaces.stands(workspace.path):  # what was taken may lack what went first
        return await _lost(this)
    this.account = await ctx.offload(accounts.read, workspace.path, this.contract.report_path)
    if this.outcome.subplan is not None:
        await keep.work(ctx, task, this.number, this.taken, "delegated", candidate=this.candidate)
        return tripwire.verdict(ctx, task) or this.outcome.failure or _may_delegate(this)
    return await _verdict(this, this.taken)


def _may_delegate(this: _Try) -> Failure | None:
    permissions = this.contract.permissions
    if this.candidate is not None:
        return Failure(Reason.TOOL_DENIED, f"a candidate for step {this.task} may not delegate", hint="race its parts")
    if permissions.can_spawn_children and permissions.max_delegation_depth > 0:
        return None
    return Failure(Reason.TOOL_DENIED, f"step {this.task} may not delegate", hint="see `can_spawn_children`")


def _advice(this: _Try) -> str:
    """The analyzer's recommended tools, where they are fewer than the contract's; a retry in another role may have fewer."""
    allowed = this.contract.permissions.allowed_tools
    tools = [tool for tool in this.ctx.step(this.task).recommended_tools if allows(this.contract, tool)]
    if not tools or set(allowed) <= set(tools):
        return ""
    return f"\n## Recommended tools\nThese should suffice: {', '.join(tools)}.\n"


async def _work(this: _Try, previous: str | None) -> Outcome:
    failure = await gate.setup(this.execute)
    if failure is not None:
        return Outcome(failure=failure)
    ctx, execute = this.ctx, this.execute
    job = Job(
        contract=this.contract,
        attempt=this.number,
        workspace=execute.workspace.path,
        prompt=ctx.parts.prompt(this.contract, previous, execute.workspace.sparse) + _advice(this),
        task=this.task,
        env=this.contract.work.env,
        private=execute.workspace.private,
        log=execute.log,
        candidate=this.candidate or 1,
        note=functools.partial(ctx.note, this.task),
        confined=ctx.parts.processes.protects_parent,
        previous_usage=_previous_usage(this),
    )

    def on_tool(tool: str, arguments: Mapping[str, Any], *, allowed: bool, ok: bool, message: str) -> None:
        if allowed:
            ctx.note(this.task, ev.ToolCalled, tool=tool, arguments=dict(arguments), ok=ok, message=message)
        else:
            ctx.note(this.task, ev.ToolDenied, tool=tool, arguments=dict(arguments), message=message)

    tools = ctx.parts.make_tools(this.contract, execute.workspace.path, execute, on_tool, step=this.task)
    wall_ms = this.contract.execution.attempt_timeout_ms
    try:
        # A single program is ended by its own limit; this one binds an agent that runs several.
        async with asyncio.timeout((wall_ms + limits.KILL_GRACE_MS) / 1000):
            return await ctx.parts.agent(this.contract.work.agent).perform(job, tools, execute)
    except TimeoutError:
        said = f"step {this.task} did not end within {duration.text(wall_ms)}"
        return Outcome(
            failure=Failure(Reason.TIMEOUT, said, hint="raise the step's `timeout`, or make the step smaller")
        )
    except ContractViolation as error:
        return Outcome(failure=Failure(Reason.TOOL_DENIED, error.message, hint=error.hint))
    except ToolFailed as error:
        return Outcome(failure=Failure(Reason.AGENT_FAILED, error.message, hint=error.hint))


def _previous_usage(this: _Try) -> dict[str, Any]:
    """What the last finished attempt of this sub-agent said of itself, its session above all.

    A candidate of a race begins anew: that session may be another agent's.
    """
    if this.candidate is not None:
        return {}
    facts = reversed(this.ctx.journal.facts(this.task))
    return next((fact.usage for fact in facts if isinstance(fact, ev.AttemptFinished)), {})


async def _verdict(this: _Try, taken: Snapshot) -> Failure | None:
    """The first thing that is wrong; the agent's claims can only add to it."""
    failure = (
        tripwire.verdict(this.ctx, this.task)
        or this.outcome.failure
        or judgement.refusal(this.task, taken)
        or judgement.size(this.task, this.contract, taken.changes)
        or _ownership(this, taken)
        or _admitted(this)
        or judgement.emptiness(this.task, this.contract, taken.changes)
    )
    if failure is not None or not this.contract.checks:
        return failure
    with this.ctx.flying(this.task):
        failure = await _checked(this, taken)
        await tripwire.look(this.ctx)
    return tripwire.verdict(this.ctx, this.task) or failure


async def _checked(this: _Try, taken: Snapshot) -> Failure | None:
    if not this.execute.workspace.sparse:
        return await gate.checks(this.execute, taken.tree, "workspace")
    # What passes without the files that were left out says nothing of the tree that has them.
    purpose = f"check{this.number}" + (f".{this.candidate}" if this.candidate else "")
    return await gate.checks_apart(this.ctx, this.task, taken.commit, taken.tree, purpose)


def _ownership(this: _Try, taken: Snapshot) -> Failure | None:
    outside = judgement.outside(this.contract, taken.changes)
    if this.contract.ownership.exceptions_allowed:
        for path in [path for path in outside if path in this.account.exceptions]:
            this.ctx.note(this.task, ev.OwnershipExcepted, path=path, reason=this.account.exceptions[path])
            outside.remove(path)
    return judgement.violation(this.task, this.contract, outside)


def _admitted(this: _Try) -> Failure | None:
    if this.account.admits_failure:
        return Failure(Reason.AGENT_FAILED, this.account.admits_failure)
    unmet = [str(item.get("criterion", ""))[:200] for item in this.account.criteria if item.get("met") is False]
    if unmet:
        return Failure(Reason.CRITERION_FAILED, f"the agent reports unmet criteria: {'; '.join(unmet)}")
    return None


def _finish(this: _Try, failure: Failure | None, duration_ms: int) -> None:
    log = this.execute.log
    finished = this.ctx.fact(
        this.task,
        ev.AttemptFinished,
        attempt=this.number,
        ok=failure is None and this.outcome.subplan is None,
        subplan=None if failure is not None or this.outcome.subplan is None else dict(this.outcome.subplan),
        reason=None if failure is None else failure.reason,
        message="" if failure is None else failure.message + (f" ({failure.hint})" if failure.hint else ""),
        paths=[] if failure is None else list(failure.paths),
        duration_ms=duration_ms,
        exit_code=this.outcome.exit_code,
        log=f"logs/{log.name}" if log.exists() else None,
        retry_in_ms=None if failure is None else failure.retry_after_ms,
        usage=dict(this.outcome.usage),
        account="\n\n".join(part for part in (this.account.problem, this.account.text) if part),
        criteria=[
            {name: str(item.get(name, ""))[:500] for name in ("criterion", "met", "evidence")}
            for item in this.account.criteria[:100]
        ],
    )
    this.ctx.journal.append(finished, *_counted(this, failure))


def _counted(this: _Try, failure: Failure | None) -> list[ev.Fact]:
    """The failure as the orchestrator counts it; a rate limit is a pause, not a failure."""
    if failure is None:
        return []
    count = this.ctx.step(this.task).failed_attempts + (failure.reason is not Reason.RATE_LIMITED)
    return [ev.TaskFailed(task=this.task, error=failure.reason, fail_count=count, final=False)]
