"""Which steps have programs at work, as often as they have: candidates of one step end at different times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness.model.ids import TaskId


class Flight:
    """A set whose members count how often they were added."""

    def __init__(self) -> None:
        self._tasks: Counter[TaskId] = Counter()

    def add(self, task: TaskId) -> None:
        self._tasks[task] += 1

    def discard(self, task: TaskId) -> None:
        self._tasks[task] -= 1

    def __iter__(self) -> Iterator[TaskId]:
        return (task for task, count in self._tasks.items() if count > 0)
