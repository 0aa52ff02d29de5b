"""What becomes of an exception that nobody expected: a crash file, and one error with its own exit status."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from harness import __version__
from harness.config import settings as settings_file
from harness.errors import EnvironmentProblem, Internal
from harness.model import limits
from harness.model.ids import RunId
from harness.runs.masking import Masking
from harness.vcs import places
from harness.wiring import Project

_PACKAGE = Path(__file__).parents[1]
_NAME = "crash-*.txt"


def report(bug: BaseException, argv: Sequence[str], directory: Path) -> Internal:
    """The error to end with; its `crash_file` tells versions, traceback and the last events, without secrets.

    Never raises: whatever else is broken here is told in the file.
    """
    project = _project(directory)
    discretion = Masking.of(os.environ, project.settings.env_pass if project else (), {})
    run_id = run_of(bug)
    sections = [_surroundings(argv), "".join(traceback.format_exception(bug)), _last_events(project, run_id)]
    path, why = _write(_folder(project), discretion.text("\n".join(sections)))
    told = discretion.text(f"{type(bug).__name__}: {bug}".splitlines()[0])[: limits.CRASH_MESSAGE]
    return Internal(
        f"internal error in {_place(bug)}: {told}",
        hint=f"this is a bug of Orchestrix, not of a step; {f'see {path}' if path else why}"
        + (f"; `orchestrix resume {run_id}` carries on with the run" if run_id else ""),
        crash_file=str(path) if path else None,
        **({"run_id": run_id} if run_id else {}),
    )


def run_of(bug: BaseException) -> str | None:
    """The run that the engine drove when it happened; of nested ones the outermost."""
    notes = [note for note in getattr(bug, "__notes__", ()) if note.startswith(Internal.WHILE_DRIVING)]
    return notes[-1].removeprefix(Internal.WHILE_DRIVING) if notes else None


def _place(bug: BaseException) -> str:
    """The last line of the harness's own that it passed through."""
    place = "the harness"
    for frame in traceback.extract_tb(bug.__traceback__):
        if Path(frame.filename).is_relative_to(_PACKAGE):
            place = f"harness/{Path(frame.filename).relative_to(_PACKAGE)}:{frame.lineno}"
    return place


def _project(directory: Path) -> Project | None:
    try:
        return Project.at(directory)
    except Exception:  # noqa: BLE001 - a crash file is written whatever else is broken
        return None


def _surroundings(argv: Sequence[str]) -> str:
    lines = {
        "orchestrix": __version__,
        "python": sys.version.replace("\n", " "),
        "platform": platform.platform(),
        "sqlite": sqlite3.sqlite_version,
        "arguments": json.dumps(list(argv)),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return "".join(f"{name}: {value}\n" for name, value in lines.items())


def _last_events(project: Project | None, run_id: str | None) -> str:
    try:
        return "last events:\n" + "\n".join(_events(project, run_id))
    except Exception as error:  # noqa: BLE001 - as above
        return f"last events: they cannot be read ({type(error).__name__}: {error})"


def _events(project: Project | None, run_id: str | None) -> Iterator[str]:
    if project is None or not project.database.exists():
        return
    log = project.reading
    run = RunId(run_id) if run_id else next(reversed(log.run_ids()), None)
    if run is not None:
        for envelope in log.events(run, after=max(0, log.state(run).last_seq - limits.CRASH_EVENTS)):
            yield json.dumps(envelope.as_dict())[: limits.CRASH_EVENT_CHARS]


def _folder(project: Project | None) -> Path:
    home = project.settings.state_home if project else settings_file.default_state_home(os.environ)
    return home / "crashes"


def _write(folder: Path, text: str) -> tuple[Path | None, str]:
    """The file, or why there is none; where the state home cannot be written to, the system's temporary folder serves."""
    name = f"{_NAME.split('*', maxsplit=1)[0]}{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}.txt"
    why = ""
    for place in (folder, Path(tempfile.gettempdir())):
        try:
            if place == folder:
                places.require_own(folder.parent)
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(place / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(text.encode("utf-8", "backslashreplace"))
        except (OSError, EnvironmentProblem) as error:
            why = why or f"no crash file could be written in {place}: {error}"
            continue
        if place == folder:
            _forget_old(place)
        return place / name, ""
    return None, why


def _forget_old(folder: Path) -> None:
    for old in sorted(folder.glob(_NAME))[: -limits.CRASH_FILES]:
        old.unlink(missing_ok=True)
