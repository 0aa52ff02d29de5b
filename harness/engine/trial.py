"""What setup and checks showed on one exact tree, before anybody's verdict on it."""

from __future__ import annotations

import asyncio

from harness.checks.judge import CheckResult
from harness.model.ids import CommitId, TaskId
from harness.model.late import dataclass
from harness.model.verdict import Failure


@dataclass(frozen=True, slots=True)
class Trial:
    """`setup` is why the checks could not run; without it there is a result for each check."""

    setup: Failure | None
    results: tuple[CheckResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Guess:
    """A trial that was begun before its step's turn: `commit` is the merge if every step in `assumes` passes."""

    assumes: tuple[TaskId, ...]
    commit: CommitId
    work: asyncio.Task[Trial]
