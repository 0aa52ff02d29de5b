"""One run as its coordinator holds it: the plan, the contracts, the ports, and what the log says so far."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TypeVar

from harness.engine.journal import Journal
from harness.engine.offload import Offload
from harness.engine.options import Options
from harness.engine.parts import Parts
from harness.engine.trial import Guess
from harness.model import events as ev
from harness.model import nesting, rounds
from harness.model.contract import Contract
from harness.model.ids import CommitId, RefName, RunId, TaskId, work_branch
from harness.model.late import dataclass
from harness.model.nesting import Nest
from harness.model.plan import Plan
from harness.model.schedule import Schedule
from harness.model.state import StepState

_Fact = TypeVar("_Fact", bound=ev.StepFact)


@dataclass(slots=True)
class Context:
    run_id: RunId
    plan: Plan
    schedule: Schedule
    options: Options
    parts: Parts
    journal: Journal
    offload: Offload
    holder: Mapping[str, object]
    slots: asyncio.Semaphore
    nest: Nest | None = None
    in_flight: Counter[TaskId] = field(default_factory=Counter)  # steps with programs at work, as often as they have
    tampered: dict[TaskId, list[str]] = field(default_factory=dict)
    changed: dict[TaskId, list[str]] = field(default_factory=dict)
    merges: dict[tuple[CommitId, CommitId], CommitId] = field(default_factory=dict)
    base_checks: dict[str, bool] = field(default_factory=dict)
    base_locks: defaultdict[TaskId, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    tracked: frozenset[str] = frozenset()
    guesses: dict[TaskId, Guess] = field(default_factory=dict)
    contracts: dict[str, Contract] = field(default_factory=dict)
    gates: asyncio.Semaphore = field(init=False)
    run_dir: Path = field(init=False)
    environment: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        """No more gates run at once than agents do, whether it is their turn or not."""
        self.gates = asyncio.Semaphore(self.options.jobs)
        self.run_dir = self.parts.runs_dir / self.run_id
        self.environment = self.parts.environment(self.options.env_pass)

    @property
    def base(self) -> CommitId:
        return CommitId(self.journal.state.base)

    @property
    def integration_ref(self) -> RefName:
        return RefName(self.journal.state.integration_ref)

    def adopt_plan(self) -> None:
        """Takes over the plans that the log holds by now."""
        self.plan = rounds.plan(self.journal.state.goal, self.journal.state.rounds)
        self.schedule = rounds.order(self.journal.state.rounds)

    def task(self, idx: int) -> TaskId:
        return nesting.task_id(self.nest.parent_task if self.nest else None, idx)

    @property
    def depth(self) -> int:
        """0 for a run that a person started, one more for each nesting."""
        return len(self.nest.parent_task.order) if self.nest else 0

    @contextlib.contextmanager
    def flying(self, task: TaskId) -> Iterator[None]:
        """While the body runs, programs of this step may be at work: a change in the parent may be theirs."""
        self.in_flight[task] += 1
        try:
            yield
        finally:
            self.in_flight[task] -= 1

    @property
    def flying_now(self) -> list[TaskId]:
        """The steps with programs at work, in plan order."""
        return sorted((task for task, count in self.in_flight.items() if count > 0), key=lambda task: task.order)

    def step(self, task: TaskId) -> StepState:
        return self.journal.step(task)

    def contract(self, task: TaskId) -> Contract:
        """The contract as persisted: the log, not the plan file, binds the child. It never changes, so it is read once."""
        step = self.step(task)
        if step.sub_agent_id not in self.contracts:
            self.contracts[step.sub_agent_id] = Contract.model_validate(step.contract)
        return self.contracts[step.sub_agent_id]

    def branch(self, task: TaskId) -> RefName:
        return work_branch(self.run_id, task)

    def about(self, task: TaskId) -> dict[str, str | int]:
        """The fields that every fact about a step carries."""
        step = self.step(task)
        return {"sub_agent_id": step.sub_agent_id, "step_idx": step.step_idx, "task": step.task_id}

    def fact(self, task: TaskId, kind: type[_Fact], **values: object) -> _Fact:
        """A fact about a step, not yet logged."""
        return kind(**self.about(task), **values)  # type: ignore[arg-type]  # Value checks names and refuses others

    def task_failed(self, task: TaskId, error: str) -> ev.TaskFailed:
        """The end of a task that failed, to be logged with the fact that fails its sub-agent."""
        count = max(1, self.step(task).failed_attempts)
        return ev.TaskFailed(task=task, error=error, fail_count=count, final=True)

    def task_succeeded(self, task: TaskId, merged: CommitId) -> ev.TaskSucceeded:
        """The end of a task that was integrated, to be logged with the merge."""
        tries = (fact for fact in self.journal.facts(task) if isinstance(fact, ev.AttemptFinished))
        said = f"{len(self.step(task).changed_paths)} paths merged as {merged[:12]}"
        return ev.TaskSucceeded(task=task, result_summary=said, duration_ms=sum(fact.duration_ms for fact in tries))

    def note(self, task: TaskId, kind: type[ev.StepFact], **values: object) -> None:
        """Appends one fact about a step."""
        self.journal.append(self.fact(task, kind, **values))
