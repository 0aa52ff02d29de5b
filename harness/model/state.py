"""State is the fold of the log: `evolve(state, envelope)` over frozen values, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any

from harness.errors import IllegalTransition
from harness.model import budget, lifecycle, run_fold, usage, workflow_fold
from harness.model import events as ev
from harness.model.budget import Spent
from harness.model.ids import TaskId
from harness.model.late import dataclass
from harness.model.lifecycle import RunStatus, State
from harness.model.shared import Shared
from harness.model.value import evolved


@dataclass(frozen=True)
class StepState:
    """One sub-agent."""

    sub_agent_id: str
    task_id: str
    step_idx: int
    step_id: str | None
    title: str
    contract: Mapping[str, Any]
    state: State = State.CREATED
    final_status: str | None = None
    close_reason: str | None = None
    message: str | None = None
    origin: str | None = None
    start_point: str | None = None
    attempts: int = 0
    failed_attempts: int = 0
    pauses: int = 0
    recoveries: int = 0
    open_attempt: bool = False
    ready: bool = False
    last_reason: str | None = None
    last_paths: tuple[str, ...] = ()
    last_retry_ms: int | None = None
    commit: str | None = None
    tree: str | None = None
    changed_paths: tuple[str, ...] = ()
    merge_commit: str | None = None
    intended_merge: str | None = None
    conflicts: tuple[Mapping[str, str], ...] = ()
    kept_ref: str | None = None
    kept: tuple[str, ...] = ()
    report: str | None = None
    workspaces: tuple[str, ...] = ()
    started_at: str | None = None
    ended_at: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    turns: Mapping[str, Any] = field(default_factory=dict)  # of a model in the attempt that is open
    decided: str | None = None  # the node that has the task now; None while nobody has
    next_attempt_at: str | None = None
    pause_ms: int = 0
    refused: bool = False  # parked work that cannot be integrated as it is
    escalated: bool = False
    rejected: bool = False
    granted: int = 0  # tries that a person allowed beyond the contract's
    analysis: str | None = None
    recommended_tools: tuple[str, ...] = ()
    recovering: bool = False
    spawns: int = 0
    child_run: str | None = None  # the nested run that has the task now
    last_child: str | None = None
    child_plan: Mapping[str, Any] = field(default_factory=dict)
    child_status: str | None = None
    child_reason: str | None = None
    child_head: str | None = None
    since: int = 0  # the line of the log that created the sub-agent

    @property
    def done(self) -> bool:
        return self.state is State.CLOSED


@dataclass(frozen=True)
class RunState:
    """One run."""

    run_id: str
    status: RunStatus = RunStatus.RUNNING
    goal: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict)
    plan_path: str = ""
    plan_digest: str = ""
    base: str = ""
    head: str = ""
    target: str | None = None
    integration_ref: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    exit_code: int | None = None
    landed: str | None = None
    target_at: str | None = None  # where the target was when the run began
    landings: tuple[Mapping[str, Any], ...] = ()  # those that stand, oldest first: target, old, new, at
    landing: Mapping[str, Any] | None = None  # a landing, or its undoing, that was announced and has no outcome yet
    created_at: str = ""
    finished_at: str | None = None
    coordinators: int = 0
    steps: Shared[str, StepState] = field(default_factory=Shared)
    superseded: tuple[StepState, ...] = ()
    parent_run: str | None = None
    parent_task: str | None = None
    within: Mapping[str, Any] | None = None
    budget: Mapping[str, Any] = field(default_factory=dict)
    bounds: Mapping[str, int] = field(default_factory=dict)  # max_depth, max_steps, max_reentry where they are set
    decisions: int = 0  # routing decisions, those of nested runs that have returned included
    spent: Spent = field(default_factory=Spent)
    asked: Mapping[str, Any] = field(default_factory=dict)  # usage of the run's own questions and of nested runs
    decided: str | None = None  # the node that has the run as a whole now
    rounds: tuple[Mapping[str, Any], ...] = ()  # the plans of a run, in order; a run of a plan file has one
    partial: bool = False
    more_work: bool | None = None  # None while nobody has looked at this round's results
    missing: str = ""
    final_response: str = ""
    cancelling: str | None = None  # why every child is closed, or to be closed; a successor or a new start clears it
    waiting: str | None = None
    waiting_tasks: tuple[str, ...] = ()  # those that a person must decide about, nested ones included
    last_seq: int = 0
    last_ts: str = ""
    last_hash: str = ev.GENESIS

    @property
    def ended(self) -> bool:
        """Every child is closed and the run has its outcome; a retry adds children to a run that had ended.

        A run that was only stopped has the status `cancelled`, but no exit code.
        """
        outcome = self.status in (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED)
        outcome = outcome and self.exit_code is not None
        return outcome and all(step.done for step in self.steps.values())

    @property
    def usage(self) -> dict[str, int | float]:
        """Every model call of the run: of all sub-agents, also those that were replaced, its own questions, and nested runs."""
        steps = (*self.superseded, *self.steps.values())
        return usage.total([*(step.usage for step in steps), *(step.turns for step in steps), self.asked])

    def ordered(self) -> list[StepState]:
        return sorted(self.steps.values(), key=lambda step: TaskId(step.task_id).order)


def initial(run_id: str) -> RunState:
    return RunState(run_id=run_id)


def fold(run_id: str, envelopes: Iterable[ev.Envelope]) -> RunState:
    """The state after all of these envelopes."""
    state = initial(run_id)
    for envelope in envelopes:
        state = evolve(state, envelope)
    return state


def evolve(state: RunState, envelope: ev.Envelope) -> RunState:
    """The state after one more envelope; raises IllegalTransition where the lifecycle forbids it."""
    fact = envelope.fact()
    if not state.last_seq and not isinstance(fact, ev.RunCreated):
        raise IllegalTransition(f"run {state.run_id} does not exist: {envelope.type} cannot be its first event")
    handler = _HANDLERS.get(type(fact))
    if handler is not None:
        state = handler(state, fact, envelope.ts)
    spent = state.spent + budget.used_by(fact) + budget.driven(fact, state.last_ts, envelope.ts)
    steps = state.steps if handler is not None else _stepped(state, fact, envelope.ts)
    return evolved(state, steps=steps, spent=spent, last_seq=envelope.seq, last_ts=envelope.ts, last_hash=envelope.hash)


def _stepped(state: RunState, fact: ev.Fact | None, ts: str) -> Shared[str, StepState]:
    """The steps after a fact about one of them, if it is about one."""
    if not isinstance(fact, ev.StepFact):
        return state.steps
    step, change = _live(state, fact), _CHANGES.get(type(fact))
    return state.steps if change is None else state.steps | {fact.task: change(step, fact, ts)}


def _created(state: RunState, fact: ev.SubagentCreated, _ts: str) -> RunState:
    old = state.steps.get(fact.task)
    if old is not None and not (old.done and old.final_status == "failed"):
        raise IllegalTransition(f"step {fact.task} has a sub-agent that is not closed as failed")
    superseded = state.superseded if old is None else (*state.superseded, old)
    if any(fact.sub_agent_id == other.sub_agent_id for other in superseded):
        raise IllegalTransition(f"sub-agent {fact.sub_agent_id} exists already", sub_agent_id=fact.sub_agent_id)
    step = StepState(
        sub_agent_id=fact.sub_agent_id,
        task_id=fact.task,
        step_idx=fact.step_idx,
        step_id=fact.step_id,
        title=fact.title,
        contract=fact.contract,
        origin=fact.origin,
        # Attempts are counted on: their number names logs and kept work, and none may be written over.
        attempts=0 if old is None else old.attempts,
        since=state.last_seq + 1,
    )
    cancelling = state.cancelling if old is None else None
    return evolved(state, steps=state.steps | {fact.task: step}, superseded=superseded, cancelling=cancelling)


def _live(state: RunState, fact: ev.StepFact) -> StepState:
    """The sub-agent that a fact is about; one that was closed and replaced can have no more facts."""
    step = state.steps.get(fact.task)
    if step is None or step.sub_agent_id != fact.sub_agent_id:
        raise IllegalTransition(f"no live sub-agent {fact.sub_agent_id}", hint="it was closed and replaced")
    return step


def _to(step: StepState, new: State) -> State:
    return lifecycle.check(step.sub_agent_id, step.state, new)


def _started(step: StepState, fact: ev.SubagentStarted, ts: str) -> StepState:
    return evolved(step, state=_to(step, State.RUNNING), start_point=fact.start_point, started_at=ts)


def _attempt(step: StepState, fact: ev.SubagentAttempt, _ts: str) -> StepState:
    if step.state is not State.RUNNING:
        raise IllegalTransition(f"sub-agent {step.sub_agent_id} is {step.state}: no attempt can start")
    # What an attempt used that never finished is the step's all the same.
    used = usage.together((step.usage, step.turns), step.usage) if step.turns else step.usage
    return evolved(step, attempts=fact.attempt, open_attempt=True, ready=False, usage=used, turns={})


def _spoke(step: StepState, fact: ev.ModelSpoke, _ts: str) -> StepState:
    return evolved(step, turns=usage.total([step.turns, usage.of(fact)]))


def _attempt_finished(step: StepState, fact: ev.AttemptFinished, _ts: str) -> StepState:
    paused = fact.reason == "rate_limited"
    failed = step.failed_attempts + (0 if fact.ok or paused or fact.subplan else 1)
    return evolved(
        step,
        open_attempt=False,
        ready=fact.ok,
        failed_attempts=failed,
        pauses=step.pauses + paused,
        last_reason=fact.reason,
        last_paths=tuple(fact.paths),
        last_retry_ms=fact.retry_in_ms,
        message=None if fact.ok else fact.message,
        usage=usage.together((step.usage, fact.usage), {**step.usage, **fact.usage}),
        turns={},
        decided=step.decided if fact.ok else None,
        next_attempt_at=None,
        analysis="spawn" if fact.subplan else step.analysis if fact.ok or not step.child_run else None,
        child_plan=fact.subplan or (step.child_plan if fact.ok else {}),
        child_run=step.child_run if fact.ok else None,
        child_status=step.child_status if fact.ok else None,
        child_reason=step.child_reason if fact.ok else None,
    )


def _snapshot(step: StepState, fact: ev.SnapshotTaken, _ts: str) -> StepState:
    return evolved(step, commit=fact.commit, tree=fact.tree, changed_paths=tuple(fact.changed_paths))


def _waiting(step: StepState, fact: ev.SubagentWaitingForMerge, _ts: str) -> StepState:
    return evolved(
        step,
        state=_to(step, State.WAITING_FOR_MERGE),
        commit=fact.commit,
        tree=fact.tree,
        changed_paths=tuple(fact.changed_paths),
        report=fact.report,
        open_attempt=False,
        decided=None,
    )


def _failed(step: StepState, fact: ev.SubagentFailed, ts: str) -> StepState:
    return evolved(
        step,
        state=_to(step, State.FAILED),
        close_reason=fact.reason,
        message=fact.message,
        kept_ref=fact.kept_ref or step.kept_ref,
        commit=fact.commit or step.commit,
        open_attempt=False,
        ended_at=ts,
    )


def _integrating(step: StepState, fact: ev.IntegrationStarted, _ts: str) -> StepState:
    return evolved(step, intended_merge=fact.merge_commit)


def _integration_failed(step: StepState, fact: ev.IntegrationFailed, ts: str) -> StepState:
    return evolved(
        step,
        state=_to(step, State.FAILED),
        close_reason=fact.reason,
        message=fact.message,
        conflicts=tuple(fact.conflicts),
        kept_ref=fact.kept_ref or step.kept_ref,
        ended_at=ts,
    )


def _closed(step: StepState, fact: ev.SubagentClosed, _ts: str) -> StepState:
    expected = "completed" if step.state is State.COMPLETED else "failed"
    if fact.final_status != expected:
        raise IllegalTransition(f"sub-agent {step.sub_agent_id} is {step.state}, not {fact.final_status}")
    return evolved(
        step,
        state=_to(step, State.CLOSED),
        final_status=fact.final_status,
        close_reason=fact.close_reason,
        decided=None,
    )


def _workspace(step: StepState, fact: ev.WorkspacePreparing, _ts: str) -> StepState:
    """A parked step is under way again while its checks run on the merged tree: they, too, may kill a coordinator.

    Not so ahead of its turn: then a death may be any other step's doing, and the next coordinator waits for the turn.
    """
    gate = step.state is State.WAITING_FOR_MERGE and not fact.purpose.startswith(ev.AHEAD)
    others = (path for path in step.workspaces if path != fact.path)
    return evolved(step, workspaces=(*others, fact.path), open_attempt=gate or step.open_attempt)


def _workspace_gone(step: StepState, fact: ev.WorkspaceRemoved, _ts: str) -> StepState:
    gate = step.state is State.WAITING_FOR_MERGE
    left = tuple(path for path in step.workspaces if path != fact.path)
    return evolved(step, workspaces=left, open_attempt=step.open_attempt and not gate)


def _kept(step: StepState, fact: ev.WorkKept, _ts: str) -> StepState:
    return evolved(step, kept=(*step.kept, fact.ref), kept_ref=fact.ref)


def _merged(state: RunState, fact: ev.WorktreeMerged, ts: str) -> RunState:
    step = _live(state, fact)
    done = evolved(step, state=_to(step, State.COMPLETED), merge_commit=fact.merge_commit, message=None, ended_at=ts)
    return evolved(state, steps=state.steps | {fact.task: done}, head=fact.merge_commit)


_CHANGES: dict[type, Callable[[StepState, Any, str], StepState]] = {
    ev.SubagentStarted: _started,
    ev.SubagentAttempt: _attempt,
    ev.AttemptFinished: _attempt_finished,
    ev.ModelSpoke: _spoke,
    ev.SnapshotTaken: _snapshot,
    ev.SubagentWaitingForMerge: _waiting,
    ev.SubagentFailed: _failed,
    ev.IntegrationStarted: _integrating,
    ev.IntegrationFailed: _integration_failed,
    ev.SubagentClosed: _closed,
    ev.WorkspacePreparing: _workspace,
    ev.WorkspaceRemoved: _workspace_gone,
    ev.WorkKept: _kept,
}
_HANDLERS: dict[type, Callable[[RunState, Any, str], RunState]] = {
    ev.SubagentCreated: _created,
    ev.WorktreeMerged: _merged,
    **run_fold.HANDLERS,
    **workflow_fold.HANDLERS,
}
