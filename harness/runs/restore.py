"""Brings kept work back as a branch."""

from __future__ import annotations

from harness.errors import NotFound
from harness.model.ids import CommitId, RefName, RunId
from harness.model.state import StepState
from harness.wiring import Project


def restore(project: Project, run_id: RunId, steps: list[StepState]) -> list[tuple[StepState, RefName, CommitId]]:
    """One branch `orchestrix-restore/<run>/<step>` for each step that has kept or merged work."""
    vcs = project.repository
    found = []
    for step in steps:
        commit = _commit(project, run_id, step)
        if commit is None:
            continue
        ref = RefName(f"refs/heads/orchestrix-restore/{run_id}/{step.task_id}")
        old = vcs.read_ref(ref)
        if old != commit:
            vcs.move_ref(ref, commit, old)
        found.append((step, ref, commit))
    if not found:
        raise NotFound(f"run {run_id} has no kept work to restore", hint="see `orchestrix status`")
    return found


def _commit(project: Project, run_id: RunId, step: StepState) -> CommitId | None:
    """The newest kept snapshot; where none is kept, the branch of the step."""
    for name in (step.kept_ref, f"refs/heads/orchestrix/{run_id}/{step.task_id}/work"):
        at = project.repository.read_ref(RefName(name)) if name else None
        if at is not None:
            return at
    return CommitId(step.commit) if step.commit and step.changed_paths else None
