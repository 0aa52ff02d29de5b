"""Whether a task must not go on because another one failed: dependants never run on a failed step. Pure."""

from __future__ import annotations

from harness.model.state import StepState
from harness.model.verdict import Failure, Reason
from harness.orchestrator.board import Board


def of(board: Board, step: StepState) -> Failure | None:
    """Why the step is given up, or None; with `on_failure: stop`, nothing after a failed step goes on."""
    if not board.failed:
        return None
    lost = board.needs(step) & board.failed
    if lost:
        return Failure(Reason.DEPENDENCY_FAILED, f"step {step.task_id} needs step {_first(lost)}, which failed")
    before = board.failed & ((1 << step.step_idx) - 1)
    if board.policies.stop_at_failure and before:
        return Failure(Reason.STOPPED, f"the run stops at failed step {_first(before)}")
    return None


def _first(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
