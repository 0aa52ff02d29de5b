"""A whole run against a plain git script that does the same work, start-up included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bench.contenders import BARE, PLAIN, Contender
from bench.footprint import OFTEN_S, SELDOM_S, Footprint, Watcher
from bench.ground import Ground
from bench.places import Place, Task
from bench.timing import Comparison, Spent, compare, spend


@dataclass(frozen=True, slots=True)
class Case:
    """One size of repository and of plan, and what every contender took for it."""

    title: str
    files: int
    steps: int
    times: Comparison
    footprints: dict[str, Footprint]

    def overhead(self, name: str) -> float | None:
        """Seconds a step beyond what its command takes by itself."""
        spent = self.times.spent
        return (spent[name].clock - spent[BARE].clock) / self.steps if BARE in spent else None


class Runs:
    """Contenders that take turns at a task, and what is known of them so far."""

    def __init__(self, task: Task, ground: Ground, tell: Callable[[str], None]) -> None:
        self._task = task
        self._ground = ground
        self._tell = tell
        self._places: dict[str, Place] = {}
        self._trees: dict[str, str] = {}
        self._footprints: dict[str, Footprint] = {}

    def measure(self, contenders: Sequence[Contender], rounds: int, weighed: bool) -> Case:
        """Raises RuntimeError when the contenders do not end in the same tree; weighing takes one more run of each."""
        turns = {contender.name: partial(self._timed, contender) for contender in contenders}
        times = compare(turns, PLAIN, {}, rounds)
        for contender in contenders if weighed else ():
            self._weighed(contender)
        if len(set(self._trees.values())) != 1:
            raise RuntimeError(f"the contenders did not do the same work: {self._trees}")
        return Case(self._task.title, self._task.sample.files, self._task.steps, times, self._footprints)

    def _timed(self, contender: Contender) -> Spent:
        spent = self._run(contender, Watcher(SELDOM_S), self._place(contender))
        self._tell(f"{self._task.title}, {contender.name}: {spent.clock:.3f} s")
        return spent

    def _weighed(self, contender: Contender) -> None:
        place = self._place(contender)
        self._run(contender, Watcher(OFTEN_S, place.root), place)
        disk = self._footprints[contender.name].disk or 0
        self._tell(f"{self._task.title}, {contender.name}: {disk / 1e6:.0f} MB of disk")

    def _place(self, contender: Contender) -> Place:
        """A new one, or that of the contender that this one comes after."""
        if not contender.after:
            self._places[contender.name] = Place.made(self._task, self._ground.folder())
        self._ground.settle()
        return self._places[contender.after or contender.name]

    def _run(self, contender: Contender, watcher: Watcher, place: Place) -> Spent:
        command, env = contender.command(place), place.env | contender.env(place)
        spent = spend(command, place.repo, env, watcher.watch)
        self._trees[contender.name] = contender.tree(place)
        seen = self._footprints.get(contender.name, watcher.seen)
        self._footprints[contender.name] = seen.peaks(watcher.seen)
        return spent
