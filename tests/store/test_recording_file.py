"""A recording as a file: whole or refused, bounded, and never a path."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from harness.errors import NotFound, UsageError
from harness.model import limits
from harness.model.recording import Recording, Step
from harness.store import recording_file
from harness.store.recording_file import RecordingFile


def _written(folder: Path) -> Path:
    path = folder / "run.zip"
    recording = Recording(run="r1", steps=(Step(title="one", contract="0" * 64),))
    recording_file.write(path, recording, {"steps": []}, [("blobs/a", b"\x00\xff")])
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Manifest and parts come back as they were; nothing is left beside the file."""
    path = _written(tmp_path)
    file = RecordingFile.open(path)
    assert file.recording.steps[0].title == "one"
    assert file.part("blobs/a") == b"\x00\xff"
    assert zipfile.ZipFile(path).namelist() == ["recording.json", "plan.json", "blobs/a"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.zip"]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """No file, a directory, a part that is not in it."""
    path = _written(tmp_path)
    with pytest.raises(NotFound, match="there is no recording"):
        RecordingFile.open(tmp_path / "none.zip")
    with pytest.raises(UsageError, match="is not a whole recording"):
        RecordingFile.open(tmp_path)
    with pytest.raises(UsageError, match=r"is not a whole recording: .*blobs/b"):
        RecordingFile.open(path).part("blobs/b")


def test_a_file_that_would_grow_without_end_is_not_opened(tmp_path: Path, monkeypatch) -> None:
    """Its parts together are bounded, before one of them is read."""
    monkeypatch.setattr(limits, "RECORDING_BYTES", 100)
    with pytest.raises(UsageError, match="holds more than 100 bytes"):
        RecordingFile.open(_written(tmp_path))


def test_a_later_format_and_unknown_fields_are_refused(tmp_path: Path) -> None:
    """Half understood is not understood."""
    for manifest in ('{"format": 2, "run": "r", "steps": []}', '{"format": 1, "run": "r", "steps": [], "more": 1}'):
        with zipfile.ZipFile(tmp_path / "odd.zip", "w") as file:
            file.writestr("recording.json", manifest)
        with pytest.raises(UsageError, match="is not a whole recording"):
            RecordingFile.open(tmp_path / "odd.zip")
