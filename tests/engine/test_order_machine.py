"""Seeded histories of integration: random plans, outcomes, finish orders and interruptions against one prediction.

The coordinator, git and the log are the real ones; agents finish when the machine says so, and programs are a table.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from support.workbench import Workbench

from harness.engine import create, launch
from harness.engine.clock import SystemClock
from harness.engine.options import Options
from harness.engine.parts import Parts
from harness.model.ids import RunId
from harness.model.lifecycle import State
from harness.model.plan import Plan
from harness.model.process import Ending, ProcessIdentity, ProcessResult, ProcessSpec
from harness.model.schedule import schedule
from harness.model.state import RunState, StepState
from harness.model.verdict import Failure, Reason
from harness.orchestrator import drive
from harness.ports import Execute, Job, Outcome, Tools
from harness.store.memory import MemoryStore
from harness.vcs.repository import Repository

RUN = RunId("r1")
EXIT = {"merged": 0, "agent_failed": 1, "check_failed": 5, "merge_conflict": 4}
PATIENCE_SECONDS = 60
MOST_INTERRUPTIONS = 2


@dataclass(frozen=True)
class Draft:
    """One step: how its agent or its check ends, whether it also rewrites the file that all share, what it needs."""

    outcome: str
    shared: bool
    needs: tuple[int, ...]


@st.composite
def drafts(draw: st.DrawFn) -> tuple[Draft, ...]:
    outcomes = st.sampled_from(["ok", "ok", "ok", "agent_failed", "check_failed", "gate_failed"])
    size = draw(st.integers(2, 5))
    return tuple(
        Draft(
            draw(outcomes),
            draw(st.booleans()),
            tuple(sorted(draw(st.sets(st.integers(0, idx - 1), max_size=2)))) if idx else (),
        )
        for idx in range(size)
    )


@dataclass(frozen=True)
class Prediction:
    """What a plan must end in, from its order alone; where a step has several reasons to fail, None."""

    reasons: tuple[str | None, ...]
    files: dict[str, str]

    @property
    def exit_code(self) -> int:
        return next((EXIT[reason or ""] for reason in self.reasons if reason != "merged"), 0)


def predicted(steps: tuple[Draft, ...], *, stop: bool, serialize: bool) -> Prediction:
    reasons: list[str | None] = []
    files = {"shared.txt": "base"}
    closures: list[set[int]] = []
    writer: int | None = None
    for idx, step in enumerate(steps):
        implied = [one for one in range(idx) if serialize and step.shared and steps[one].shared]
        before = {*step.needs, *implied}
        closures.append(before.union(*(closures[need] for need in before)))
        failed = [one for one in range(idx) if reasons[one] != "merged"]
        if closures[idx] & set(failed) or (stop and failed):
            reasons.append(None)
        elif step.outcome in ("agent_failed", "check_failed"):
            reasons.append(step.outcome)
        elif step.shared and writer is not None and writer not in closures[idx]:
            reasons.append("merge_conflict")
        elif step.outcome == "gate_failed" and {one for one in range(idx) if reasons[one] == "merged"} - closures[idx]:
            reasons.append("check_failed")  # the merged tree is not the step's own, so its checks run there
        else:
            reasons.append("merged")
            files[f"own{idx}.txt"] = f"{idx}"
            if step.shared:
                writer, files["shared.txt"] = idx, f"{idx}"
    return Prediction(tuple(reasons), files)


def plan_of(steps: tuple[Draft, ...], *, stop: bool, serialize: bool) -> Plan:
    return Plan.model_validate(
        {
            "on_failure": "stop" if stop else "continue",
            "overlap": "serialize" if serialize else "allow",
            "steps": [
                {
                    "title": f"step {idx}",
                    "command": [step.outcome],
                    "needs": list(step.needs),
                    "owns": [f"own{idx}.txt", *(["shared.txt"] if step.shared else [])],
                    "checks": [["check", step.outcome]],
                }
                for idx, step in enumerate(steps)
            ],
        }
    )


class TableOfPrograms:
    """Programs that only have an exit code."""

    name = "table"
    why = "for tests"
    protects_parent = True

    def end_orphan(self, who: ProcessIdentity) -> bool:
        raise AssertionError(f"nobody was started, but {who} should be ended")

    async def run(
        self,
        spec: ProcessSpec,
        *,
        on_start: Callable[[ProcessIdentity], None],
        talk: object = None,
        on_output: object = None,
    ) -> ProcessResult:
        await asyncio.sleep(0)
        merged = "-gate-" in spec.cwd.name or "-ahead-" in spec.cwd.name
        failing = [("check", "check_failed"), *([("check", "gate_failed")] if merged else [])]
        code = 1 if spec.argv in failing else 0
        return ProcessResult(Ending.EXITED, code, 0, "", 0, truncated=False, sandbox=self.name)


@dataclass
class PatientAgent:
    """Does its work when it is told to."""

    steps: tuple[Draft, ...]
    waiting: dict[int, asyncio.Future[None]] = field(default_factory=dict)

    async def perform(self, job: Job, tools: Tools, execute: Execute) -> Outcome:
        idx = job.contract.parent.step_idx
        self.waiting[idx] = asyncio.get_running_loop().create_future()
        try:
            await self.waiting[idx]
        finally:
            del self.waiting[idx]
        (job.workspace / f"own{idx}.txt").write_text(f"{idx}\n")
        if self.steps[idx].shared:
            (job.workspace / "shared.txt").write_text(f"{idx}\n")
        failed = self.steps[idx].outcome == "agent_failed"
        return Outcome(Failure(Reason.AGENT_FAILED, "as drawn") if failed else None)


class OrderMachine(RuleBasedStateMachine):
    """One run; the machine decides which waiting agent finishes next, and when the coordinator is stopped."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        bench.commit({"shared.txt": "base\n"}, "Start")
        self.bench = bench
        self.loop = asyncio.new_event_loop()
        self.store = MemoryStore(SystemClock())
        self.vcs = Repository(bench.files, bench.root / "state")
        self.task: asyncio.Task[RunState] | None = None
        self.interruptions = 0

    @initialize(steps=drafts(), stop=st.booleans(), serialize=st.booleans(), ahead=st.integers(0, 3))
    def begin(self, steps: tuple[Draft, ...], *, stop: bool, serialize: bool, ahead: int) -> None:
        plan = plan_of(steps, stop=stop, serialize=serialize)
        self.agent = PatientAgent(steps)
        self.expected = predicted(steps, stop=stop, serialize=serialize)
        self.order = schedule(plan)
        options = Options(jobs=len(steps), commit_time=1, speculate=ahead)
        request = create.Request(plan, self.order, "plan", "0" * 64, self.vcs.resolve("HEAD"), None, options)
        self.parts = Parts(
            store=self.store,
            vcs=self.vcs,
            processes=TableOfPrograms(),
            clock=SystemClock(),
            agent=lambda _name: self.agent,
            make_tools=lambda *_, **__: None,  # type: ignore[arg-type, return-value]  # this agent uses none
            prompt=lambda _contract, _previous, _sparse: "",
            environment=lambda _passed: {},
            runs_dir=self.bench.root / "runs",
            checkout=self.bench.files,
            drive=drive.drive,
            close=drive.close,
        )
        lease = self.store.acquire(RUN, {"pid": 1})
        self._start(launch.begin(self.parts, lease, request, {"pid": 1}, lambda _fact, _state: None))

    def _start(self, run: object) -> None:
        self.task = self.loop.create_task(run)  # type: ignore[arg-type]  # a coroutine of launch
        self._come_to_rest()

    def _steps(self) -> list[StepState]:
        return self.store.state(RUN).ordered()

    def _resting(self) -> bool:
        """Whether nothing moves until an agent finishes."""
        if RUN not in self.store.run_ids():
            return False
        steps = self._steps()
        settled = [step.done or step.state is State.WAITING_FOR_MERGE for step in steps]
        return all(
            step.done
            or step.step_idx in self.agent.waiting
            or (step.state is State.CREATED and not all(settled[need] for need in self.order.closure(step.step_idx)))
            or (step.state is State.WAITING_FOR_MERGE and not all(one.done for one in steps[: step.step_idx]))
            for step in steps
        ) and not all(step.done for step in steps)

    def _come_to_rest(self) -> None:
        async def rest() -> None:
            quiet = 0
            while quiet < 3 and self.task is not None and not self.task.done():
                await asyncio.sleep(0.001)
                quiet = quiet + 1 if self._resting() else 0

        self.loop.run_until_complete(asyncio.wait_for(rest(), PATIENCE_SECONDS))

    def _running(self) -> bool:
        return self.task is not None and not self.task.done()

    @precondition(_running)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        """One of those that wait is done."""
        self._release(data.draw(st.sampled_from(sorted(self.agent.waiting)), label="finishes"))

    def _release(self, idx: int) -> None:
        self.agent.waiting[idx].set_result(None)
        self._come_to_rest()

    @precondition(lambda self: self._running() and self.interruptions < MOST_INTERRUPTIONS)
    @rule()
    def interrupt(self) -> None:
        """The coordinator is stopped, and another one carries on."""
        self.interruptions += 1
        self._stop()
        lease = self.store.acquire(RUN, {"pid": 1})
        self._start(launch.carry_on(self.parts, lease, {"pid": 1}, lambda _fact, _state: None))

    @precondition(lambda self: not self._running())
    @rule()
    def look(self) -> None:
        """What has ended stays ended."""
        assert self.store.state(RUN).ended

    def _stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            self.loop.run_until_complete(asyncio.gather(self.task, return_exceptions=True))

    @invariant()
    def merged_in_plan_order(self) -> None:
        """Each merge comes after every earlier step was closed, and no step is merged twice."""
        merged: list[int] = []
        closed: set[int] = set()
        for envelope in self.store.events(RUN):
            if envelope.type == "agent.worktree_merged":
                merged.append(envelope.payload["step_idx"])
                assert closed >= set(range(merged[-1]))
            elif envelope.type == "agent.subagent_closed":
                assert envelope.payload["step_idx"] not in closed
                closed.add(envelope.payload["step_idx"])
        assert merged == sorted(set(merged))

    def teardown(self) -> None:
        try:
            if self.task is not None:
                while self._running():
                    self._release(max(self.agent.waiting))
                self._judge(self.task.result())
        finally:
            self._stop()
            self.loop.close()
            shutil.rmtree(self.bench.root)

    def _judge(self, state: RunState) -> None:
        """The end is the predicted one, whatever the history was."""
        reasons = [step.close_reason for step in state.ordered()]
        assert [one or two for one, two in zip(self.expected.reasons, reasons, strict=True)] == reasons
        unclear = [reasons[idx] for idx, reason in enumerate(self.expected.reasons) if reason is None]
        assert set(unclear) <= {"dependency_failed", "stopped", "agent_failed", "check_failed"}
        assert state.exit_code == self.expected.exit_code
        assert self.bench.tree(state.head) == self.expected.files
        assert self.store.audit(RUN) == []


@pytest.mark.parametrize(
    "histories", [pytest.param(6, id="quick"), pytest.param(80, id="sweep", marks=pytest.mark.sweep)]
)
def test_any_history_ends_as_the_plan_says(tmp_path: Path, histories: int) -> None:
    """Merge order, dependants of a failure, exit code and final tree are functions of plan and outcomes alone."""
    folders = (tmp_path / str(number) for number in count())
    run_state_machine_as_test(
        lambda: OrderMachine(Workbench(next(folders))),
        settings=settings(
            max_examples=histories,
            phases=[Phase.generate],  # an example costs a second: the failing history is printed as it is
            stateful_step_count=8,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
