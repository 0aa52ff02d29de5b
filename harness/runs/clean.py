"""Removes what is merged or kept, and only that; what crashed runs left is collected, never lost."""

from __future__ import annotations

from pathlib import Path

from harness.errors import SnapshotFailed
from harness.model.ids import RunId, TaskId, candidate_branches, keep_ref, work_branch
from harness.model.late import dataclass
from harness.model.state import RunState
from harness.vcs import removal
from harness.wiring import Project


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something on disk or among the refs that may go, and why."""

    run_id: str
    what: str
    why: str


def survey(project: Project) -> list[tuple[RunId, str, Path, bool]]:
    """Every workspace on disk: run, name, path, and whether its run has ended."""
    ended = {run for run in project.reading.run_ids() if _ended(project, run)}
    known = set(project.reading.run_ids())
    return [(run, name, path, run in ended or run not in known) for run, name, path in project.repository.workspaces()]


def _ended(project: Project, run: RunId) -> bool:
    return project.reading.state(run).ended and project.reading.holder(run) is None


def clean(project: Project, *, dry_run: bool = False) -> list[Leftover]:
    """Workspaces of ended runs, after a last snapshot of what they hold, work branches that are merged, and dead locks."""
    removed = []
    for run, name, path, may_go in survey(project):
        if may_go:
            removed.append(Leftover(run, str(path), "workspace of a run that has ended"))
            if not dry_run:
                _remove_workspace(project, run, name)
    if not dry_run:
        for run in {RunId(item.run_id) for item in removed}:
            project.repository.forget_run(run)
    locks = [lock for lock in project.repository.own_locks() if dry_run or project.repository.unlock(lock)]
    removed += [Leftover("", str(lock), "lock of a git that was killed") for lock in locks]
    for run in project.reading.run_ids():
        if _ended(project, run):
            removed += _merged_branches(project, project.reading.state(run), dry_run=dry_run)
    return removed


def stuck(project: Project) -> list[tuple[Path, str]]:
    """What cannot be removed, with the command that can; it is in nobody's way, and takes room."""
    return [(path, removal.command(trash)) for path, trash in project.repository.stuck()]


def _remove_workspace(project: Project, run: RunId, name: str) -> None:
    """A workspace may hold files that no snapshot has yet (a crash, or a person who worked in it): keep them first."""
    vcs = project.repository
    workspace = vcs.find_workspace(run, name)
    if workspace is not None and workspace.branch is not None:
        try:
            taken = vcs.snapshot(workspace, f"Kept by clean: run {run}, step {name}\n", project.clock.commit_time())
        except SnapshotFailed:  # its files were set aside, where nothing of ours removes them
            vcs.remove_workspace(run, name)
            return
        saved = set(vcs.refs_under(f"refs/orchestrix/keep/{run}/").values())
        known = {vcs.tree_of(commit) for commit in saved} | _merged_trees(project, run)
        if taken.changes and taken.tree not in known:
            ref = keep_ref(run, TaskId(name.split("-", 1)[0]), f"clean-{taken.commit[:12]}")
            vcs.move_ref(ref, taken.commit, vcs.read_ref(ref))
    vcs.remove_workspace(run, name)


def _merged_trees(project: Project, run: RunId) -> set[str]:
    if run not in project.reading.run_ids():
        return set()
    return {step.tree for step in project.reading.state(run).ordered() if step.tree and step.merge_commit}


def _merged_branches(project: Project, state: RunState, *, dry_run: bool) -> list[Leftover]:
    """A branch goes only if it holds exactly what was merged, or what a keep ref also holds."""
    vcs = project.repository
    run = RunId(state.run_id)
    kept = set(vcs.refs_under(f"refs/orchestrix/keep/{run}/").values())
    gone = []
    for step in state.ordered():
        task = TaskId(step.task_id)
        for branch in (work_branch(run, task), *vcs.refs_under(candidate_branches(run, task))):
            at = vcs.read_ref(branch)
            merged = step.final_status == "completed" and at == step.commit
            if at is not None and (merged or at in kept):
                gone.append(Leftover(run, branch, "merged" if merged else "kept under refs/orchestrix/keep"))
                if not dry_run:
                    vcs.delete_ref(branch, at)
    return gone
