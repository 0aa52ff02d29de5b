"""What `approve` and `reject` have in common."""

from __future__ import annotations

from pathlib import Path

from harness.cli import options
from harness.model.late import dataclass


@dataclass(frozen=True, slots=True)
class Told:
    approved: bool
    note: str


def decide(run: str, step: str, told: Told, directory: Path | None, *, as_json: bool, jsonl: bool, quiet: bool) -> int:
    """The exit status of the run that goes on with a person's decision."""
    from harness.cli import outcome  # noqa: PLC0415 - the engine is loaded by the commands that run
    from harness.runs import decide as deciding  # noqa: PLC0415 - as above
    from harness.runs import nested  # noqa: PLC0415 - as above
    from harness.wiring import Project  # noqa: PLC0415 - as above

    project = Project.at(options.here(directory))
    run_id, task = nested.owner(project.reading, project.find_run(run), step)
    project = outcome.listening(project.as_begun(run_id), as_json=as_json, jsonl=jsonl, quiet=quiet)
    outcome.notices(project)
    with outcome.watching(project, as_json=as_json, jsonl=jsonl, quiet=quiet) as watch:
        state = deciding.decide(project, run_id, task, watch, approved=told.approved, note=told.note)
    return outcome.finish(project, state, as_json=as_json, jsonl=jsonl)
