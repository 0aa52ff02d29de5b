"""The state of a run laid out for routing: open tasks in plan order, and sets of steps as bits.

A plan may have thousands of steps: neither a tick nor the question whether everything that a step needs is there may be
a loop over all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from harness.engine.context import Context
from harness.engine.journal import Journal
from harness.model.late import dataclass
from harness.model.lifecycle import State
from harness.model.schedule import Schedule
from harness.model.state import RunState, StepState
from harness.model.verdict import Failure, Reason
from harness.orchestrator import personas

_PARKED = (State.WAITING_FOR_MERGE, State.COMPLETED)


@dataclass(frozen=True, slots=True)
class Policies:
    """What routing depends on besides the state: the order of the plan and the bounds of the run; fixed for one plan."""

    order: Schedule
    jobs: int
    priorities: tuple[int, ...]
    stop_at_failure: bool = False
    persona: str = personas.PERFORM_TASK
    plans: bool = False  # whether the run began with a goal

    @classmethod
    def of(cls, ctx: Context) -> Policies:
        return cls(
            order=ctx.schedule,
            jobs=ctx.options.jobs,
            priorities=tuple(step.priority for step in ctx.plan.steps),
            stop_at_failure=ctx.plan.on_failure == "stop",
            plans=bool(ctx.options.planning),
            persona=ctx.nest.within.persona or personas.SUBAGENT if ctx.nest else personas.PERFORM_TASK,
        )


class Board:
    """Bit `n` of `parked` or `failed` is the step with index `n`; `open` is in plan order."""

    __slots__ = ("_touched", "failed", "open", "parked", "policies")

    def __init__(self, policies: Policies) -> None:
        self.policies = policies
        self.open: dict[int, StepState] = {}
        self._touched: dict[int, StepState] = {}  # open ones that are more than created
        self.parked = 0
        self.failed = 0

    @classmethod
    def of(cls, state: RunState, policies: Policies) -> Self:
        board = cls(policies)
        for step in sorted(state.steps.values(), key=lambda step: step.step_idx):
            board.put(step)
        return board

    def put(self, step: StepState) -> None:
        """Takes in what has become of one step."""
        idx, bit = step.step_idx, 1 << step.step_idx
        parked = step.state in _PARKED or step.final_status == "completed"
        failed = not parked and step.final_status == "failed"
        self.parked = self.parked | bit if parked else self.parked & ~bit
        self.failed = self.failed | bit if failed else self.failed & ~bit
        if step.done:
            self.open.pop(idx, None)
            self._touched.pop(idx, None)
            return
        again = idx not in self.open and self.open and idx < next(reversed(self.open))
        self.open[idx] = step
        if again:  # it was done and is retried
            self.open = dict(sorted(self.open.items()))
        if step.state is State.CREATED and step.decided is None and step.next_attempt_at is None:
            self._touched.pop(idx, None)
        else:
            self._touched[idx] = step

    @property
    def touched(self) -> list[StepState]:
        """The open tasks that somebody has, had or must wait for, in plan order: most of a large plan is not among them."""
        return [self._touched[idx] for idx in sorted(self._touched)]

    def ranked(self) -> Iterable[StepState]:
        """Open tasks by explicit priority, then order; within one run all are equally deep."""
        given = self.policies.priorities
        return sorted(self.open.values(), key=lambda step: -given[step.step_idx]) if any(given) else self.open.values()

    def needs(self, step: StepState) -> int:
        """Everything that the step needs, direct and indirect."""
        return self.policies.order.steps[step.step_idx].before

    def stands(self, step: StepState) -> bool:
        """Whether there is a result of everything that the step needs."""
        needs = self.needs(step)
        return needs & self.parked == needs

    def abandoned(self, step: StepState) -> Failure | None:
        """Why the step cannot go on: it needs a failed step, or stands after one and the plan says `on_failure: stop`."""
        if not self.failed:
            return None
        lost = self.needs(step) & self.failed
        if lost:
            return Failure(Reason.DEPENDENCY_FAILED, f"step {step.task_id} needs step {_first(lost)}, which failed")
        before = self.failed & ((1 << step.step_idx) - 1)
        if self.policies.stop_at_failure and before:
            return Failure(Reason.STOPPED, f"the run stops at failed step {_first(before)}")
        return None


def _first(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


class Boards:
    """The board of a run under way: it follows the journal, and is made anew when the plan is another one."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._board: Board | None = None

    def now(self, policies: Policies) -> Board:
        state, changed = self._journal.state, self._journal.changed()
        if self._board is None or self._board.policies is not policies:
            self._board = Board.of(state, policies)
            return self._board
        for task in changed:
            self._board.put(state.steps[task])
        return self._board
