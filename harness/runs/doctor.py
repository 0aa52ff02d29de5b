"""Examines everything that a run needs, each on its own, so that one failure does not hide the next."""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.engine import event_loop
from harness.errors import ModelFailed, OrchestrixError
from harness.model import limits
from harness.model.late import dataclass
from harness.ports import Message
from harness.runs import clean
from harness.vcs import git
from harness.wiring import Project


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    ok: bool
    message: str
    hint: str = ""
    needed: bool = True

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def examine(start: Path, *, ask_model: bool = False) -> list[Finding]:
    """Every finding; a check that cannot be made is a finding, too. The model is only called when `ask_model` says so."""
    findings = [Finding("python", True, platform.python_version())]
    try:
        project = Project.at(start)
    except OrchestrixError as error:
        return [*findings, Finding("repository", False, error.message, error.hint)]
    checks: tuple[tuple[str, Callable[[Project], Iterator[Finding]]], ...] = (
        ("repository", _repository),
        ("sandbox", _sandbox),
        ("workspace", _workspaces),
        ("installs", _installs),
        ("model", functools.partial(_model, ask=ask_model)),
        ("log", _log),
        ("landing", _landings),
        ("leftovers", _leftovers),
    )
    for name, check in checks:
        try:
            findings += check(project)
        except OrchestrixError as error:
            findings.append(Finding(name, False, error.message, error.hint))
    return findings


def _repository(project: Project) -> Iterator[Finding]:
    repository = project.repository
    yield Finding("git", True, git.text(git.ask("version", cwd=project.root).out).strip())
    repository.check_supported()
    yield Finding("repository", True, str(project.root))
    yield Finding("head", True, repository.resolve("HEAD"))
    yield Finding("workspaces", True, str(repository.state_dir))


def _sandbox(project: Project) -> Iterator[Finding]:
    processes = project.processes
    yield Finding(
        "sandbox",
        processes.protects_parent,
        f"{processes.name}: {processes.why}",
        "" if processes.protects_parent else "install bubblewrap to keep agents out of the parent repository",
        needed=False,
    )


def _workspaces(project: Project) -> Iterator[Finding]:
    project.require_own_state_home()
    kind = project.workspaces
    yield Finding("workspace", True, f"{kind.name}: {kind.why}")
    repository = project.repository
    head = repository.resolve("HEAD")
    some, every = repository.sparse_files(head, project.settings.workspace_sparse), len(repository.paths(head))
    told = f"`--workspace sparse` would check out what a step owns and {some:,} of {every:,} files"
    yield Finding("sparse", True, told, needed=False)


def _installs(project: Project) -> Iterator[Finding]:
    project.require_separate_installs()
    if project.settings.workspace_link or project.settings.workspace_copy:
        yield Finding("installs", True, "nothing that is linked or copied leads back to the checkout")


def _model(project: Project, *, ask: bool) -> Iterator[Finding]:
    access = project.model_access
    if access is None:
        yield Finding("model", True, "none is configured; plans that name no model need none", needed=False)
        return
    where = access.base_url or "its provider"
    key = "with a key" if access.key else "without a key"
    if not ask:
        yield Finding(
            "model", True, f"{access.label} at {where}, {key}; not asked", "--ask-model asks it", needed=False
        )
        return
    try:
        turn = event_loop.run(
            project.model.converse(
                "You are asked whether you can be reached.",
                [Message("user", "Answer with one word.")],
                [],
                timeout_ms=limits.MODEL_PROBE_MS,
            )
        )
    except ModelFailed as error:
        yield Finding("model", False, f"{access.label} at {where}, {key}: {error.kind}: {error.message}", error.hint)
        return
    tokens = turn.usage.input_tokens + turn.usage.output_tokens
    yield Finding("model", True, f"{access.label} at {where}, {key}; it answers ({tokens} tokens)")


def _log(project: Project) -> Iterator[Finding]:
    if not project.database.exists():
        yield Finding("log", True, "no runs yet")
        return
    broken = {run: problems for run in project.reading.run_ids() if (problems := project.reading.audit(run))}
    if broken:
        run, problems = next(iter(broken.items()))
        yield Finding("log", False, f"{len(broken)} runs do not verify; {run}: {problems[0]}", "see `orchestrix audit`")
    else:
        yield Finding("log", True, f"{len(project.reading.run_ids())} runs, intact")


def _landings(project: Project) -> Iterator[Finding]:
    for checkout, left in project.repository.unfinished_landings():
        told = f"a landing of run {left.run} in {checkout} is not finished: {left.branch} from {left.old[:12]} to {left.new[:12]}"
        hint = f"if none is going on, `orchestrix land {left.run}` or `orchestrix undo` settles it"
        yield Finding("landing", False, told, hint, needed=False)


def _leftovers(project: Project) -> Iterator[Finding]:
    if not project.database.exists():
        return
    for run, name, path, may_go in clean.survey(project):
        hint = "`orchestrix clean` removes it" if may_go else f"`orchestrix resume {run}` carries on with its run"
        yield Finding("leftovers", False, f"workspace {name} of run {run} at {path}", hint, needed=False)
    for path, command in clean.stuck(project):
        yield Finding("leftovers", False, f"{path} cannot be removed", command, needed=False)
    for lock in project.repository.own_locks():
        yield Finding(
            "leftovers", False, f"{lock} is there", "if it stays, `orchestrix clean` removes it", needed=False
        )
