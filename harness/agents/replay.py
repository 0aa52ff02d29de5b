"""The agent that does what a recording holds: the same bytes, the same account, no program and no model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from harness.errors import UsageError
from harness.model.changes import Edit, Workspace
from harness.model.contract import Contract
from harness.model.events import AttemptFinished
from harness.model.ids import RunId, TreeId
from harness.model.recording import Attempt, digest
from harness.model.verdict import Failure, Reason
from harness.ports import Execute, Job, Outcome, Store, Tools
from harness.store.recording_file import RecordingFile, blob_name
from harness.tools.inside import Inside


class Lays(Protocol):
    """The part of a repository that puts recorded work into a workspace."""

    def find_workspace(self, run: RunId, name: str) -> Workspace | None: ...

    def lay(
        self, workspace: Workspace, start: str, made: Sequence[Edit], wanted: TreeId, content: Callable[[str], bytes]
    ) -> None:
        """Raises UsageError when the files would not be the recorded ones."""


class ReplayAgent:
    """Stands in for every agent of a plan."""

    def __init__(self, file: RecordingFile, vcs: Lays, store: Store) -> None:
        self._file = file
        self._vcs = vcs
        self._store = store

    async def perform(self, job: Job, tools: Tools, execute: Execute) -> Outcome:  # noqa: ARG002 - nothing is run
        """Does the recorded attempt again, or refuses where the recording does not fit."""
        try:
            attempt = self._attempt(job.contract)
            if attempt.tree is not None:
                await asyncio.to_thread(self._lay, job, attempt, TreeId(attempt.tree))
            self._tell(job, attempt)
        except UsageError as error:
            words = f"the recording does not fit step {job.step}: {error.message}"
            return Outcome(Failure(Reason.REPLAY_MISMATCH, words, hint="record the run again, or run without it"))
        return Outcome(attempt.failure, exit_code=attempt.exit_code, usage={**attempt.usage, "replayed": True})

    def _attempt(self, contract: Contract) -> Attempt:
        idx = contract.parent.step_idx
        steps = self._file.recording.steps
        if idx >= len(steps) or steps[idx].contract != digest(contract):
            raise UsageError("it was recorded under another contract")
        number = self._finished(contract)
        if number >= len(steps[idx].attempts):
            raise UsageError(f"it holds {len(steps[idx].attempts)} attempts, this is number {number + 1}")
        return steps[idx].attempts[number]

    def _finished(self, contract: Contract) -> int:
        """Attempts at the step that have ended in this run: one that a coordinator died in uses up no recorded one."""
        events = self._store.events(RunId(contract.parent.run_id))
        ended = [event.payload for event in events if event.type == AttemptFinished.type]
        return sum(fact["step_idx"] == contract.parent.step_idx for fact in ended)

    def _lay(self, job: Job, attempt: Attempt, tree: TreeId) -> None:
        workspace = self._vcs.find_workspace(RunId(job.contract.parent.run_id), job.workspace.name)
        if workspace is None:
            raise UsageError(f"there is no workspace {job.workspace.name}")
        edits = [item.edit for item in attempt.edits]
        self._vcs.lay(workspace, attempt.start_tree, edits, tree, lambda blob: self._file.part(blob_name(blob)))

    def _tell(self, job: Job, attempt: Attempt) -> None:
        """Puts the account and the output where the agent and its programs had put them."""
        report = attempt.report()
        if report:
            Inside(job.workspace).write(job.contract.report_path, report.encode())
        if attempt.log is not None:
            job.log.parent.mkdir(parents=True, exist_ok=True)
            job.log.touch(0o600)
            with job.log.open("ab") as file:
                file.write(self._file.part(attempt.log))
