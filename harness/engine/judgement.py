"""What is wrong with a set of changes, whoever made them: size, ownership, emptiness. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model import limits
from harness.model.changes import Change, Snapshot
from harness.model.contract import Contract
from harness.model.globs import Ownership
from harness.model.ids import TaskId
from harness.model.verdict import Failure, Reason


def refusal(task: TaskId, taken: Snapshot) -> Failure | None:
    """Content that git itself refuses, or that would make it fail for others."""
    if not taken.refused:
        return None
    said = f"git refuses what step {task} left: {taken.refused}"
    return Failure(Reason.CONTENT_REFUSED, said, hint="its work is kept, with what was refused as plain files")


def size(task: TaskId, contract: Contract, changes: Sequence[Change]) -> Failure | None:
    if len(changes) <= contract.limits.files:
        return None
    return Failure(Reason.LIMIT_EXCEEDED, f"step {task} changed {len(changes)} files; {contract.limits.files} allowed")


def outside(contract: Contract, changes: Sequence[Change]) -> list[str]:
    """The changed paths that the step does not own."""
    owned = Ownership(contract.ownership.paths)
    return [change.path for change in changes if not owned.covers(change.path)]


def violation(task: TaskId, contract: Contract, paths: Sequence[str]) -> Failure | None:
    if not paths:
        return None
    return Failure(
        Reason.OWNERSHIP_VIOLATION,
        f"step {task} changed {len(paths)} path(s) that it does not own: {', '.join(paths[:20])}",
        tuple(paths[: limits.EVENT_PATHS]),
        hint=f"it owns {', '.join(contract.ownership.paths or ())}",
    )


def emptiness(task: TaskId, contract: Contract, changes: Sequence[Change]) -> Failure | None:
    if changes or contract.work.allow_empty:
        return None
    return Failure(
        Reason.NO_CHANGES, f"step {task} changed nothing", hint="say `allow_empty: true` if that is a valid outcome"
    )
