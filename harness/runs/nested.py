"""Finds its way between a run, its nested runs and their tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.errors import NotFound, UsageError
from harness.model.events import Envelope, SubagentReturned, SubagentSpawned
from harness.model.ids import RunId, TaskId
from harness.ports import Store


def owner(store: Store, run_id: RunId, name: str) -> tuple[RunId, TaskId]:
    """The run, this one or one nested in it, that has the task with this path id or slug; raises NotFound."""
    waiting = [run_id]
    while waiting:
        state = store.state(waiting.pop())
        for step in state.ordered():
            if name in (step.task_id, step.step_id):
                return RunId(state.run_id), TaskId(step.task_id)
            if step.last_child in store.run_ids():
                waiting.append(RunId(step.last_child or ""))
    raise NotFound(f"run {run_id} has no step {name!r:.80}", hint="see `orchestrix status`")


def family(store: Store, run_id: RunId) -> list[RunId]:
    """The run and every run below it, also those of earlier spawns, parents first."""
    found = [run_id]
    for name in sorted(run for run in store.run_ids() if run.startswith(f"{run_id}-s")):
        if store.state(name).parent_run in found:
            found.append(name)
    return found


def root(store: Store, run_id: RunId) -> RunId:
    """The run that a person started."""
    parent = store.state(run_id).parent_run
    return run_id if parent is None else root(store, RunId(parent))


def require_top(store: Store, run_id: RunId, verb: str) -> None:
    """Raises UsageError for a nested run: its parent's gate, time limit and end bind it, and only through the parent."""
    top = root(store, run_id)
    if top != run_id:
        step = f" {store.state(run_id).parent_task}".partition(".")[0] if verb == "retry" else ""
        raise UsageError(f"run {run_id} is part of run {top}", hint=f"orchestrix {verb} {top}{step}")


def timeline(store: Store, run_id: RunId, seen: dict[RunId, int]) -> Iterator[Envelope]:
    """The events of a run and of all runs below it that are not in `seen`, in one order; `seen` is brought up to date.

    By time, each run in its own order; a nested run comes after the event that spawned it and before the one that says how it returned.
    """
    known = set(store.run_ids())
    streams = {name: _Stream(store, name, seen) for name in {run_id: 0, **seen}}
    while found := _next(streams):
        name, head = found
        streams[name].advance()
        if head.type == SubagentSpawned.type and (child := _child(head)) in known and child not in streams:
            streams[child] = _Stream(store, child, seen)
        yield head


def _next(streams: Mapping[RunId, _Stream]) -> tuple[RunId, Envelope] | None:
    """The run whose event is next, and the event; None when all were told."""
    heads = {name: stream.head for name, stream in streams.items() if stream.head is not None}
    if not heads:
        return None
    name = min(heads, key=lambda one: (streams[one].time, -len(one)))
    while heads[name].type == SubagentReturned.type and _child(heads[name]) in heads:
        name = _child(heads[name])
    return name, heads[name]


def _child(envelope: Envelope) -> RunId:
    return RunId(envelope.payload["child_run"])


class _Stream:
    """The events of one run that were not seen, with a time that never goes back."""

    def __init__(self, store: Store, run_id: RunId, seen: dict[RunId, int]) -> None:
        self._run, self._seen = run_id, seen
        seen.setdefault(run_id, 0)
        self._events = iter(store.events(run_id, seen[run_id]))
        self.time = ""
        self.head: Envelope | None = None
        self._read()

    def _read(self) -> None:
        self.head = next(self._events, None)
        if self.head is not None:
            self.time = max(self.time, self.head.ts)

    def advance(self) -> None:
        if self.head is not None:
            self._seen[self._run] = self.head.seq
        self._read()
