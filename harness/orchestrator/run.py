"""A run as its nodes see it: the context, the work under way, and the board that routing looks at."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from harness.engine.context import Context
from harness.model.ids import TaskId
from harness.model.plan import Plan
from harness.model.state import StepState
from harness.orchestrator.board import Board, Boards, Policies
from harness.orchestrator.running_tasks import RunningTasks


class Run:
    """What a node is given besides its task."""

    def __init__(self, ctx: Context, tasks: RunningTasks) -> None:
        self.ctx = ctx
        self.tasks = tasks
        self._boards = Boards(ctx.journal)
        self._planned: tuple[Plan, Policies] | None = None

    @property
    def policies(self) -> Policies:
        """For the present plan: a run that began with a goal gets one on the way."""
        if self._planned is None or self._planned[0] is not self.ctx.plan:
            self._planned = (self.ctx.plan, Policies.of(self.ctx))
        return self._planned[1]

    def board(self) -> Board:
        """The board as the log stands now."""
        return self._boards.now(self.policies)

    def step(self, task: TaskId) -> StepState:
        return self.ctx.step(task)

    def needs(self, task: TaskId) -> tuple[int, ...]:
        """Everything that the task needs, direct and indirect, in plan order."""
        return self.ctx.schedule.closure(self.step(task).step_idx)

    def start(self, task: TaskId, work: Coroutine[Any, Any, None]) -> None:
        """Begins work that takes time and returns at once; the router hears of its end from the log."""
        self.tasks.start(task, work)
