"""Makes a recording of a run: what each finished attempt left, from the log and the snapshots that it names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

from harness.errors import Busy, GitFailed, NotFound, UsageError
from harness.model import events as ev
from harness.model.contract import Contract
from harness.model.ids import CommitId, RunId
from harness.model.late import dataclass
from harness.model.recording import Attempt, RecordedEdit, Recording, Step, digest
from harness.model.state import RunState
from harness.model.verdict import Reason
from harness.runs.masking import Masking
from harness.store import recording_file
from harness.wiring import Project


def record(project: Project, run_id: RunId, path: Path) -> Recording:
    """Writes the recording to `path`; raises Busy while the run goes on, UsageError where it has not ended or holds a secret."""
    log = project.log(run_id)
    state = log.state(run_id)
    driver = log.holder(run_id)
    if driver is not None:
        raise Busy(f"run {run_id} is held by process {driver.get('pid')} on {driver.get('host')}", hint="wait for it")
    if not state.ended:
        raise UsageError(f"run {run_id} has not ended", hint=f"orchestrix resume {run_id}, or wait for it")
    facts = [fact for envelope in log.events(run_id) if isinstance(fact := envelope.fact(), ev.StepFact)]
    maker = _Maker(project, state, _discretion(project, facts))
    recording = Recording(run=run_id, steps=tuple(maker.step(idx, facts) for idx in range(len(state.steps))))
    plan = dict(state.plan)
    if maker.discretion.betrayed(json.dumps(plan, ensure_ascii=False).encode()):
        raise UsageError(f"the plan of run {run_id} holds a secret", hint="keys come by `env_pass`, never by a plan")
    recording_file.write(path, recording, plan, sorted(maker.parts.items()))
    return recording


def _discretion(project: Project, facts: list[ev.StepFact]) -> Masking:
    places = {str(Path.home()): "<home>", str(project.settings.state_home): "<state>", str(project.root): "<checkout>"}
    trees = {fact.path: "<workspace>" for fact in facts if isinstance(fact, ev.WorkspacePreparing)}
    return Masking.of(os.environ, project.settings.env_pass, places | trees)


@dataclass(slots=True)
class _Maker:
    project: Project
    state: RunState
    discretion: Masking
    parts: dict[str, bytes] = field(default_factory=dict)

    def step(self, idx: int, facts: list[ev.StepFact]) -> Step:
        """Everything that was finished for the step, by all of its sub-agents in turn."""
        step = self.state.steps[str(idx)]
        own = [fact for fact in facts if fact.step_idx == idx]
        contract = Contract.model_validate(dict(step.contract))
        return Step(title=step.title, contract=digest(contract), attempts=tuple(self._attempts(own)))

    def _attempts(self, facts: list[ev.StepFact]) -> Iterator[Attempt]:
        start, taken = "", None
        exceptions: dict[str, str] = {}
        for fact in facts:
            if isinstance(fact, ev.SubagentStarted):
                start = fact.start_point
            elif isinstance(fact, ev.SubagentAttempt):
                taken, exceptions = None, {}
            elif isinstance(fact, ev.SnapshotTaken):
                taken = fact
            elif isinstance(fact, ev.OwnershipExcepted):
                exceptions[fact.path] = fact.reason
            elif isinstance(fact, ev.AttemptFinished):
                yield self._attempt(CommitId(start), taken, fact, exceptions)

    def _attempt(
        self, start: CommitId, taken: ev.SnapshotTaken | None, end: ev.AttemptFinished, exceptions: dict[str, str]
    ) -> Attempt:
        told: dict[str, Any] = {
            "message": end.message,
            "usage": end.usage,
            "account": end.account,
            "criteria": end.criteria,
            "exceptions": exceptions,
        }
        return Attempt(
            start_tree=self.project.repository.tree_of(start),
            tree=taken.tree if taken else None,
            edits=tuple(self._edits(start, taken, end)) if taken else (),
            reason=Reason(end.reason) if end.reason else None,
            paths=tuple(end.paths),
            exit_code=end.exit_code,
            log=self._log(end),
            **{name: self.discretion.value(value) for name, value in told.items()},
        )

    def _edits(self, start: CommitId, taken: ev.SnapshotTaken, end: ev.AttemptFinished) -> Iterator[RecordedEdit]:
        repository = self.project.repository
        where = f"attempt {end.attempt} of step {end.task}"
        try:
            edits = repository.edits(start, taken.commit) if taken.changed_total else []
        except GitFailed as failed:
            raise NotFound(
                f"the work of {where} is not here any more: {failed.message}",
                hint="fetch it: git fetch <remote> 'refs/orchestrix/*:refs/orchestrix/*' 'refs/heads/orchestrix/*'",
            ) from failed
        for edit in edits:
            if edit.blob is not None:
                content = repository.blob(edit.blob)
                secret = self.discretion.betrayed(content)
                if secret:
                    raise UsageError(f"{where} wrote {secret} into {os.fsdecode(edit.path)!r}: it is not recorded")
                self.parts[recording_file.blob_name(edit.blob)] = content
            yield RecordedEdit.of(edit)

    def _log(self, end: ev.AttemptFinished) -> str | None:
        """The output of the attempt's programs, if it is still here, under a name of its own."""
        path = None if end.log is None else self.project.runs_dir / self.state.run_id / end.log
        if path is None or not path.is_file():
            return None
        name = f"logs/step-{end.task}-attempt-{end.attempt}.log"
        told = path.read_bytes().decode("utf-8", "surrogateescape")
        self.parts[name] = self.discretion.text(told).encode("utf-8", "surrogateescape")
        return name
