"""A recording in the place of the agents of a plan."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.config import reading
from harness.engine import reports
from harness.errors import NotFound, UsageError
from harness.model import limits, nesting
from harness.model.contract import Caps
from harness.model.ids import RunId
from harness.model.personas import PERFORM_TASK, capped
from harness.model.plan import Plan
from harness.model.state import RunState
from harness.store.recording_file import RecordingFile
from harness.wiring import Project


def fitting(path: Path, plan: Plan, caps: Mapping[str, Mapping[str, Any]]) -> str:
    """The digest of the recording; raises UsageError, naming the first difference, when it is of another plan."""
    try:
        with reading.opened(path, limits.RECORDING_BYTES):
            file = RecordingFile.open(path)
    except reading.Unreadable as error:
        if error.missing:
            raise NotFound(f"there is no recording {path}", hint="make one with `orchestrix record`") from error
        raise UsageError(f"{path} {error}", hint="give --replay a file that `orchestrix record` wrote") from error
    bound = Caps.model_validate(dict(caps.get(PERFORM_TASK, {})))
    contracts = [capped(nesting.contract(plan, idx, "replayed", "auto"), bound) for idx in range(len(plan.steps))]
    why = file.recording.misfit(contracts)
    if why:
        raise UsageError(f"{path} does not fit the plan: {why}", hint="`unzip -p FILE plan.json` prints its own plan")
    return file.digest


def check_copy(project: Project, state: RunState) -> None:
    """Raises UsageError when the recording that a run keeps is not the one that it began with."""
    begun = state.options.get("replay")
    if begun and RecordingFile.open(project.recording_of(RunId(state.run_id))).digest != begun:
        raise UsageError(
            f"the recording of run {state.run_id} was changed", hint="start a new run with --replay and the original"
        )


def adopt(path: Path, target: Path) -> None:
    """Copies the recording to the run's folder, whole or not at all, before the log says that it is there."""
    reports.make_folder(target.parent)
    aside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    aside.touch(0o600)
    shutil.copyfile(path, aside)
    aside.replace(target)
