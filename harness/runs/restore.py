"""Brings kept work back as branches."""

from __future__ import annotations

import re

from harness.errors import NotFound, UsageError
from harness.model.ids import CommitId, RefName, RunId
from harness.model.late import dataclass
from harness.model.state import StepState
from harness.runs import nested
from harness.wiring import Project


@dataclass(frozen=True, slots=True)
class Restored:
    """One branch; `kept` names the attempt, and is empty for what is on the step's own branch."""

    step: StepState
    kept: str
    branch: RefName
    commit: CommitId


def restore(project: Project, run_id: RunId, name: str | None) -> list[Restored]:
    """A branch for every kept attempt of a run, or of the step with this path id or slug; the newest of each step first.

    Attempts that a retry replaced and those of nested runs count. A step that is named and has nothing kept comes back
    as it was merged. Raises NotFound.
    """
    for lock in project.repository.own_locks():
        project.repository.unlock(lock)  # of a restore that was killed
    found = [
        Restored(step, label, _branched(project, f"orchestrix-restore/{run}/{step.task_id}", label, commit), commit)
        for run, step in _steps(project, run_id, name)
        for label, commit in _kept(project, run, step, merged=name is not None and name in (step.task_id, step.step_id))
    ]
    if not found:
        raise NotFound(f"run {run_id} has no kept work to restore", hint="see `orchestrix status`")
    return found


def _steps(project: Project, run_id: RunId, name: str | None) -> list[tuple[RunId, StepState]]:
    """The steps of a run and of the runs below it; with a name that step, and what it was split into."""
    log = project.log(run_id)
    rows = [(run, step) for run in nested.family(log, run_id) for step in log.state(run).ordered()]
    if name is None:
        return rows
    tops = {step.task_id for _, step in rows if name in (step.task_id, step.step_id)}
    if not tops:
        raise NotFound(f"run {run_id} has no step {name!r:.80}", hint="see `orchestrix status`")
    return [(run, step) for run, step in rows if any(f"{step.task_id}.".startswith(f"{top}.") for top in tops)]


def _kept(project: Project, run_id: RunId, step: StepState, *, merged: bool) -> list[tuple[str, CommitId]]:
    """Label and commit of each kept attempt, the newest first; where none is kept, the branch of the step."""
    vcs = project.repository
    prefix = f"refs/orchestrix/keep/{run_id}/{step.task_id}/"
    refs = {ref.removeprefix(prefix): at for ref, at in vcs.refs_under(prefix).items()}
    attempts = {label: at for label, at in refs.items() if not label.startswith("agent-")}
    newest = (step.kept_ref or "").removeprefix(prefix)
    labels = sorted(attempts, key=lambda label: (label == newest, _order(label)), reverse=True)
    rows = [(label, attempts[label]) for label in labels]
    rows = [row for number, row in enumerate(rows) if row[1] not in [commit for _, commit in rows[:number]]]
    if rows or not (merged or step.final_status != "completed"):
        return rows
    taken = CommitId(step.commit) if step.commit and step.changed_paths else None
    own = vcs.read_ref(RefName(f"refs/heads/orchestrix/{run_id}/{step.task_id}/work")) or taken
    return [("", own)] if own else []


def _branched(project: Project, name: str, label: str, commit: CommitId) -> RefName:
    """A branch at the commit: the plain name, or one with the attempt in it. A branch that is there is never moved."""
    vcs = project.repository
    branches = [RefName.branch(name), RefName.branch(f"{name}-{label or commit[:12]}")]
    for branch in branches:
        at = vcs.read_ref(branch)
        if at == commit:
            return branch
        if at is None:
            vcs.move_ref(branch, commit, None)
            return branch
    raise UsageError(
        f"{branches[-1].short} is there, and holds something else", hint="rename or delete it, then restore again"
    )


def _order(label: str) -> tuple[bool, list[int], str]:
    """Attempts by number, and after them what `clean` kept."""
    return label.startswith("clean-"), [int(number) for number in re.findall(r"\d+", label)], label
