"""The asyncio tasks of a run: one for each decision that takes time, so that steps run side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from harness.engine.context import Context
from harness.model.ids import TaskId
from harness.model.state import RunState


class RunningTasks:
    """What nodes start and the loop waits for; leaving it ends what is left and raises the first error."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._group = asyncio.TaskGroup()
        self._jobs: dict[TaskId, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self.waits: dict[TaskId, RunState] = {}  # nested runs that wait for a person

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._group.__aexit__(kind, error, trace)
        except BaseExceptionGroup as several:
            raise _first(several) from several

    def start(self, task: TaskId, work: Coroutine[Any, Any, None]) -> None:
        """Begins work on a task, in place of what is under way for it, which is ended first."""
        old = self._jobs.get(task)
        if old is not None:
            old.cancel()
        job = self._group.create_task(_after(old, work), name=f"step {task}")
        self._jobs[task] = job
        job.add_done_callback(lambda done: self._ended(task, done))

    def _ended(self, task: TaskId, job: asyncio.Task[None]) -> None:
        if self._jobs.get(task) is job:
            del self._jobs[task]
        self._changed.set()

    def end(self) -> None:
        """Ends all work that is left; what it made is kept by those who did it."""
        for job in self._jobs.values():
            job.cancel()

    @property
    def idle(self) -> bool:
        return not self._jobs

    async def change(self, within: timedelta | None) -> None:
        """Returns when something has ended since the last call, or when the time is over."""
        if within is None:
            await self._changed.wait()
        else:
            try:
                async with asyncio.timeout(within.total_seconds()):
                    await self._changed.wait()
            except TimeoutError:
                return
        self._changed.clear()


async def _after(old: asyncio.Task[None] | None, work: Coroutine[Any, Any, None]) -> None:
    try:
        if old is not None:
            await asyncio.wait({old})
        await work
    finally:
        work.close()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one cause that a person should hear of."""
    for error in group.exceptions:
        return _first(error) if isinstance(error, BaseExceptionGroup) else error
    return group
