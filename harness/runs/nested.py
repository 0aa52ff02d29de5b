"""Finds its way between a run, its nested runs and their tasks."""

from __future__ import annotations

from harness.errors import NotFound
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


def root(store: Store, run_id: RunId) -> RunId:
    """The run that a person started."""
    parent = store.state(run_id).parent_run
    return run_id if parent is None else root(store, RunId(parent))
