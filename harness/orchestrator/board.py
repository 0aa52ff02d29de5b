"""The state of a run laid out for routing: open tasks in plan order, and sets of steps as bits.

A plan may have thousands of steps: whether everything that a step needs is there must not be a loop over them.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.late import dataclass
from harness.model.lifecycle import State
from harness.model.state import RunState, StepState
from harness.orchestrator.policies import Policies

_PARKED = (State.WAITING_FOR_MERGE, State.COMPLETED)
_ONE = ord("1")


@dataclass(frozen=True, slots=True)
class Board:
    """Bit `n` of `parked` or `failed` is the step with index `n`."""

    policies: Policies
    open: tuple[StepState, ...]
    parked: int
    failed: int

    @classmethod
    def of(cls, state: RunState, policies: Policies) -> Board:
        open_ = []
        parked, failed = bytearray(b"0" * (len(state.steps) or 1)), bytearray(b"0" * (len(state.steps) or 1))
        for step in state.steps.values():
            if not step.done:
                open_.append(step)
            if step.state in _PARKED or step.final_status == "completed":
                parked[-1 - step.step_idx] = _ONE
            elif step.final_status == "failed":
                failed[-1 - step.step_idx] = _ONE
        open_.sort(key=lambda step: step.step_idx)
        return cls(policies, tuple(open_), int(parked, 2), int(failed, 2))

    def ranked(self) -> Sequence[StepState]:
        """Open tasks by explicit priority, then order; within one run all are equally deep."""
        given = self.policies.priorities
        return sorted(self.open, key=lambda step: -given[step.step_idx]) if any(given) else self.open

    def needs(self, step: StepState) -> int:
        """Everything that the step needs, direct and indirect."""
        return self.policies.order.steps[step.step_idx].before

    def stands(self, step: StepState) -> bool:
        """Whether there is a result of everything that the step needs."""
        needs = self.needs(step)
        return needs & self.parked == needs
