"""The artifacts folder: everything that a person needs to understand the job when the machine is gone."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from harness.ci import junit
from harness.ci.result import Result
from harness.errors import EnvironmentProblem
from harness.model import limits
from harness.model.events import Envelope
from harness.sandbox.redact import plain_text

_ARCHIVED = ("run.md", "step-*-result.md", "step-*-result.json", "logs/step-*.log")
_OTHERS = ("events.jsonl", "junit.xml", "summary.json", "plan.yaml", "plan.json")


def claim(folder: Path) -> None:
    """Makes the folder and takes away what an earlier job left in it, by name; raises EnvironmentProblem."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for pattern in (*_ARCHIVED, *_OTHERS):
            for path in folder.glob(pattern):
                path.unlink()
    except OSError as error:
        raise EnvironmentProblem(
            f"artifacts cannot be written to {folder}: {error.strerror}", hint="give --artifacts another directory"
        ) from error


def write(folder: Path, result: Result) -> None:
    """The job for machines: JUnit XML, and the data of `run --json` with the error, if there was one."""
    summary = {**result.data(), "error": result.error.as_dict() if result.error else None}
    _replace(folder / "summary.json", json.dumps(summary, ensure_ascii=False, indent=2) + "\n")
    _replace(folder / "junit.xml", junit.render(result))


def write_plan(folder: Path, name: str, text: str) -> None:
    _replace(folder / ("plan.json" if name.lower().endswith(".json") else "plan.yaml"), text)


def write_events(folder: Path, envelopes: Iterable[Envelope]) -> None:
    """The log as `orchestrix events --jsonl` prints it, one sealed envelope a line."""
    with (folder / "events.jsonl").open("w", encoding="utf-8", errors="replace") as file:
        for envelope in envelopes:
            file.write(json.dumps(envelope.as_dict(), ensure_ascii=False) + "\n")


def copy_archive(folder: Path, archive: Path) -> None:
    """Reports and logs from the run's archive; a link there is left alone."""
    (folder / "logs").mkdir(exist_ok=True)
    for pattern in _ARCHIVED:
        for path in sorted(archive.glob(pattern)):
            if path.is_file() and not path.is_symlink():
                shutil.copyfile(path, folder / path.relative_to(archive))


def tail(log: Path) -> str:
    """The end of a log as text for people; empty where there is none."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 4 * limits.OUTPUT_EXCERPT_CHARS))
            return plain_text(file.read())[-limits.OUTPUT_EXCERPT_CHARS :]
    except FileNotFoundError:
        return ""


def _replace(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="replace")
