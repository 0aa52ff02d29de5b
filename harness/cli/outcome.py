"""What the commands that drive a run have in common: watch it, then say how it ended and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from harness.cli import output, progress
from harness.config.plan_file import LoadedPlan
from harness.engine.create import Request
from harness.engine.journal import Watch
from harness.errors import Exit, OrchestrixError, Retry
from harness.model import view
from harness.model.ids import CommitId, RefName, RunId
from harness.model.lifecycle import RunStatus
from harness.model.state import RunState, StepState
from harness.runs import clean
from harness.runs import land as landing
from harness.wiring import Project


class RunFailed(OrchestrixError):
    code = "run_failed"


def notices(project: Project) -> None:
    """What a person should know before agents start."""
    if not project.processes.protects_parent:
        output.say(f"warning: no sandbox: agents can write wherever you can ({project.processes.why})")


def listening(project: Project, *, as_json: bool, jsonl: bool, quiet: bool) -> Project:
    """The project as a person drives it who may hear the final answer while the model gives it."""
    return project if as_json or jsonl or quiet else replace(project, hears=progress.Heard())


@contextmanager
def watching(
    project: Project,
    *,
    as_json: bool,
    jsonl: bool = False,
    quiet: bool,
    verbose: bool = False,
) -> Iterator[Watch]:
    if jsonl:
        yield progress.envelopes(project.store)
        return
    heard = project.hears if isinstance(project.hears, progress.Heard) else None
    with progress.watching(quiet=quiet or as_json, verbose=verbose, heard=heard) as watch:
        yield watch


def dry_run(loaded: LoadedPlan, wanted: Request, *, as_json: bool) -> int:
    """What would happen: nothing is made."""
    data: dict[str, Any] = {
        "dry_run": True,
        "base": wanted.base,
        "target": wanted.target and RefName(wanted.target).short,
        "jobs": wanted.options.jobs,
        "steps": len(loaded.plan.steps),
        "waves": loaded.schedule.waves,
    }
    if as_json:
        output.emit(data)
    else:
        output.line(f"{data['steps']} steps on {wanted.base[:12]}, {data['jobs']} at once; nothing was started")
        for number, wave in enumerate(loaded.schedule.waves, 1):
            output.line(f"  {number}. steps {', '.join(str(idx) for idx in wave)}")
    return 0


def finish(
    project: Project,
    state: RunState,
    *,
    land: bool = False,
    as_json: bool,
    jsonl: bool = False,
    advise: bool = True,
) -> int:
    """The end of a run as an exit status; lands first when that was asked for and everything succeeded.

    Without `advise`, the caller says what can be done next.
    """
    refused: OrchestrixError | None = None
    if land and state.status is RunStatus.SUCCEEDED:
        try:
            state = landing.land(project, RunId(state.run_id))
        except OrchestrixError as error:
            refused = error
    code = refused.exit_code if refused else state.exit_code or 0
    data = {**view.run(state, held=False), "exit_code": code}
    if as_json:
        _envelope(data, state, refused)
    elif not jsonl:
        _people(project, state, asked=land and refused is None and state.status is RunStatus.SUCCEEDED, advise=advise)
        for path, command in clean.stuck(project):
            output.say(f"warning: {path} cannot be removed ({command})")
        if refused is not None:
            output.failure(refused, as_json=False)
    return code


def _envelope(data: dict[str, Any], state: RunState, refused: OrchestrixError | None) -> None:
    if not data["exit_code"]:
        output.emit(data)
        return
    output.failure(refused or _failure(state), as_json=True, data=data)


class RunWaits(OrchestrixError):
    code = "run_waits"
    exit_code = Exit.WAITING
    retry = Retry.ESCALATE


def _failure(state: RunState) -> OrchestrixError:
    if state.waiting is not None:
        return RunWaits(f"run {state.run_id} waits: {state.waiting}", hint=view.next_step(state), run_id=state.run_id)
    failed = [step for step in state.ordered() if step.final_status == "failed"]
    first = failed[0]
    return RunFailed(
        f"step {first.task_id} failed: {first.close_reason}: {first.message}",
        hint=f"orchestrix report {state.run_id} --step {first.task_id}",
        run_id=state.run_id,
        step=first.step_idx,
        reason=first.close_reason,
    )


def _people(project: Project, state: RunState, *, asked: bool, advise: bool) -> None:
    if state.final_response:
        output.line(state.final_response + "\n")
    for step in state.ordered():
        output.line(_row(step))
    branch = RefName(state.integration_ref).short
    merged = sum(step.final_status == "completed" for step in state.ordered())
    output.line(f"run {state.run_id}: {state.status}, {merged} of {len(state.steps)} steps merged on {branch}")
    if state.waiting is not None:
        output.line(f"waits: {state.waiting}")
        output.line(f"next: {view.next_step(state)}")
    elif asked or (state.landed and state.landed == state.head):
        landed(project, state)
    elif not advise:
        pass
    elif state.status is RunStatus.SUCCEEDED:
        output.line(f"next: git diff {state.base[:12]} {branch}; orchestrix land {state.run_id}")
    else:
        output.line(f"next: orchestrix report {state.run_id}; orchestrix retry {state.run_id} STEP")


def landed(project: Project, state: RunState) -> None:
    """What a landing moved, and the way back."""
    made = landing.last(state)
    if made is None:
        output.line(f"nothing to land: the result of run {state.run_id} changes no file")
        return
    branch, old, new = RefName(made["target"]).short, made["old"], made["new"]
    if old == new:
        output.line(f"{branch} was at {new[:12]} already; nothing moved")
        return
    output.line(f"{branch}: {old[:12] if old else 'new branch'}..{new[:12]}")
    for row in project.repository.stat(CommitId(old or state.base), CommitId(new)).splitlines():
        output.line(row)
    output.line(f"way back, while nothing came after it: orchestrix undo {state.run_id}")


def _row(step: StepState) -> str:
    mark = "ok  " if step.final_status == "completed" else "FAIL" if step.done else "wait"
    text = f"{mark} {step.task_id:>3}  {step.title}"
    if step.final_status == "completed":
        return text + f"  {(step.merge_commit or '')[:12]}"
    if not step.done:
        return text + f"  {step.state}" + (f"\n      {step.last_reason}: {step.message}" if step.escalated else "")
    kept = f"; work kept at {step.kept_ref}" if step.kept_ref else ""
    return text + f"\n      {step.close_reason}: {step.message}{kept}"
