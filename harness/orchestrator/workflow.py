"""The workflow as one value (WorkflowStateModel, TASK): a projection of the log, and the checkpoint that outlives it.

The log outranks a checkpoint: one is only read where the database is gone, and it carries the facts to make it anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from harness import __version__
from harness.config import reading
from harness.engine import reports
from harness.errors import UsageError
from harness.model import events as ev
from harness.model import limits
from harness.model.ids import RunId, TaskId
from harness.model.lifecycle import RunStatus, State
from harness.model.state import RunState, StepState
from harness.orchestrator import personas
from harness.ports import Store

SCHEMA_VERSION: Final = 2


def _from_1(data: dict[str, Any]) -> dict[str, Any]:
    """Version 2 says which harness wrote it, and which tools were recommended for each task."""
    tasks = [
        {**task, "execution_context": {"recommended_tools": [], **task.get("execution_context", {})}}
        for task in data.get("tasks", [])
    ]
    return {**data, "schema_version": 2, "harness_version": "", "tasks": tasks}


# From a version to the next one; docs/reference/migration-guide.md tells people.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _from_1}

Logged = dict[str, Any]


class Task(BaseModel):
    """One task of a workflow, as the specification names its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    task_id: str
    description: str
    status: Literal["pending", "in_progress", "completed", "failed"]
    parent_task_id: str | None
    depth: int
    persona: str
    priority: int
    execution_context: dict[str, Any]
    failure_context: dict[str, Any]
    max_retries: int
    next_attempt_at: str | None
    subAgent_context: dict[str, Any]  # noqa: N815 - the specification's spelling
    created_at: str


class WorkflowStateModel(BaseModel):
    """A run with the tasks of its nested runs; `logs` holds the facts of each."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    schema_version: int
    harness_version: str
    workflow_id: str
    original_goal: str
    workflow_status: Literal["STARTED", "IN_PROGRESS", "COMPLETED", "FAILED"]
    tasks: list[Task]
    current_task_id: str | None
    executed_nodes: list[str]
    final_response: str
    logs: dict[str, list[Logged]]

    @classmethod
    def of(cls, store: Store, run_id: RunId) -> WorkflowStateModel:
        """The projection of a run's log, nested runs included."""
        states = _family(store, run_id)
        tasks = [_task(state, step) for state in states for step in state.ordered()]
        tasks.sort(key=lambda task: TaskId(task.task_id).order)
        top = states[0]
        logs: Any = {state.run_id: _Log(store, RunId(state.run_id)) for state in states}
        # Not validated: that would copy the whole log, which is ours and may be large.
        return cls.model_construct(
            schema_version=SCHEMA_VERSION,
            harness_version=__version__,
            workflow_id=top.run_id,
            original_goal=top.goal,
            workflow_status=_status(top),
            tasks=tasks,
            current_task_id=next((task.task_id for task in tasks if task.status == "in_progress"), None),
            executed_nodes=[
                json.loads(line.payload)["chosen_node"]
                for line in store.lines(run_id)
                if line.type == ev.RoutingDecision.type
            ],
            final_response=top.final_response,
            logs=logs,
        )

    def save_checkpoint(self, path: Path) -> None:
        """Whole or not at all; the log goes in line by line and is never in memory as a whole."""
        with reports.replacing(path) as file:
            head = json.dumps(self.model_dump(exclude={"logs"}), ensure_ascii=False)
            file.write(_encoded(head[:-1] + ', "logs": {'))
            for run, lines in self.logs.items():
                file.write(_encoded(("" if run == self.workflow_id else ", ") + json.dumps(run) + ": ["))
                for number, text in enumerate(_texts(lines)):
                    file.write(_encoded((", " if number else "") + text))
                file.write(b"]")
            file.write(b"}}")

    @classmethod
    def load_checkpoint(cls, path: Path) -> WorkflowStateModel:
        """Raises UsageError for a file that is no checkpoint, or one of a version that is not known here."""
        try:
            data = json.loads(reading.content(path, limits.CHECKPOINT_BYTES).decode("utf-8", "surrogatepass"))
        except reading.Unreadable as error:
            raise UsageError(f"{path} {error}", hint="give the checkpoint's file itself") from error
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path} cannot be read as a checkpoint: {error}", hint="give the file itself") from error
        try:
            return cls.model_validate(_migrated(data, path))
        except ValidationError as error:
            raise UsageError(
                f"{path} is no checkpoint: {error.errors()[0]['msg']}", hint="a checkpoint is written by a run"
            ) from error


def _migrated(data: Any, path: Path) -> Any:
    version = data.get("schema_version") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= SCHEMA_VERSION:
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        raise UsageError(
            f"{path} has checkpoint version {version!r:.20}; this harness reads 1 to {SCHEMA_VERSION}",
            hint="update the harness: a newer one wrote it" if newer else "a checkpoint is written by a run",
        )
    try:
        while version < SCHEMA_VERSION:
            data = MIGRATIONS[version](data)
            version = data["schema_version"]
    except (TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"{path} is no checkpoint: {error}", hint="a checkpoint is written by a run") from error
    return data


def _family(store: Store, run_id: RunId) -> list[RunState]:
    """The run and all below it, parents first."""
    state, known = store.state(run_id), set(store.run_ids())
    below = [RunId(step.last_child) for step in state.ordered() if step.last_child in known]
    return [state, *(found for child in below for found in _family(store, child))]


class _Log(NamedTuple):
    """A run's log where it lies."""

    store: Store
    run_id: RunId


def _texts(log: _Log | Iterable[Logged]) -> Iterator[str]:
    """The lines as JSON; those of the store are JSON already."""
    if isinstance(log, _Log):
        return (f'{{"type": "{line.type}", "payload": {line.payload}}}' for line in log.store.lines(log.run_id))
    return (json.dumps(line, ensure_ascii=False) for line in log)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _status(state: RunState) -> Literal["STARTED", "IN_PROGRESS", "COMPLETED", "FAILED"]:
    if state.status is RunStatus.SUCCEEDED:
        return "COMPLETED"
    if state.status is RunStatus.FAILED:
        return "FAILED"
    return "IN_PROGRESS" if state.steps else "STARTED"


def _task(state: RunState, step: StepState) -> Task:
    contract, work = step.contract, step.contract["work"]
    return Task(
        task_id=step.task_id,
        description=f"{step.title}\n\n{contract['step']['description']}".strip(),
        status=_task_status(step),
        parent_task_id=state.parent_task,
        depth=len(TaskId(step.task_id).order) - 1,
        persona=contract.get("persona") or (personas.SUBAGENT if state.parent_run else personas.PERFORM_TASK),
        priority=state.plan["steps"][step.step_idx].get("priority", 0),
        execution_context={
            "tool_name": work["agent"],
            "parameters": {name: work[name] for name in ("command", "actions") if work.get(name)},
            "recommended_tools": list(step.recommended_tools),
            "result": step.merge_commit or step.commit,
        },
        failure_context={"fail_count": step.failed_attempts, "last_error": step.last_reason, "message": step.message},
        max_retries=contract["execution"]["max_retries"],
        next_attempt_at=step.next_attempt_at,
        subAgent_context={"subAgent_id": step.last_child, "spawns": step.spawns} if step.last_child else {},
        created_at=state.created_at,
    )


def _task_status(step: StepState) -> Literal["pending", "in_progress", "completed", "failed"]:
    if step.done or step.state in (State.COMPLETED, State.FAILED):
        return "completed" if State.COMPLETED in (step.state, step.final_status) else "failed"
    return "pending" if step.state is State.CREATED else "in_progress"
