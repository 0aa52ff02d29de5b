"""Makes a run anew from its checkpoint, where the database that held it is gone."""

from __future__ import annotations

from pathlib import Path

from harness.errors import UsageError
from harness.model import events as ev
from harness.model.ids import RunId
from harness.orchestrator.workflow import WorkflowStateModel
from harness.ports import Lease, Store
from harness.wiring import Project, holder


def restore(project: Project, path: Path) -> RunId:
    """The run of a checkpoint, in the store; a run that the store still knows is left as it is: the log outranks."""
    saved = WorkflowStateModel.load_checkpoint(path)
    known = set(project.store.run_ids())
    for name, lines in saved.logs.items():
        if name not in known:
            _rewrite(project.store, RunId(name), [_fact(line, path) for line in lines])
    return RunId(saved.workflow_id)


def _rewrite(store: Store, run_id: RunId, facts: list[ev.Fact]) -> None:
    """All facts in one transaction, under an epoch that no coordinator before had: its workspaces stay its own."""
    last = max((fact.epoch for fact in facts if isinstance(fact, ev.RunStarted)), default=0)
    lease = _acquire(store, run_id, last)
    try:
        store.append(lease, facts)
    finally:
        store.release(lease)


def _acquire(store: Store, run_id: RunId, last: int) -> Lease:
    lease = store.acquire(run_id, holder())
    while lease.epoch <= last:
        store.release(lease)
        lease = store.acquire(run_id, holder())
    return lease


def _fact(line: dict[str, object], path: Path) -> ev.Fact:
    kind = ev.TYPES.get(str(line.get("type")))
    payload = line.get("payload")
    if kind is None or not isinstance(payload, dict):
        raise UsageError(
            f"{path} holds a fact {line.get('type')!r:.80} that is not known here", hint="update the harness"
        )
    try:
        return kind(**{name: value for name, value in payload.items() if name in kind.fields})
    except TypeError as error:
        raise UsageError(f"{path}: {error}", hint="the checkpoint is damaged") from error
