"""The artifacts folder belongs to its user; the job only touches the names it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.ci import artifacts
from harness.errors import EnvironmentProblem
from harness.model import limits


def _names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def test_an_earlier_job_is_taken_away_and_nothing_else(tmp_path):
    """A shorter run never stands beside reports of a longer one."""
    (tmp_path / "logs").mkdir()
    ours = (
        "events.jsonl",
        "junit.xml",
        "run.md",
        "step-7-result.md",
        "step-7-result.json",
        "logs/step-7-attempt-1.log",
    )
    theirs = ("notes.md", "logs/server.log", "step-7.txt")
    for name in (*ours, *theirs):
        (tmp_path / name).write_text("old")
    artifacts.claim(tmp_path)
    assert _names(tmp_path) == sorted(theirs)


def test_a_folder_that_cannot_be_made_is_said_before_anything_runs(tmp_path):
    """The error names the folder and the option."""
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentProblem) as caught:
        artifacts.claim(tmp_path / "file" / "art")
    assert (caught.value.exit_code, caught.value.hint) == (3, "give --artifacts another directory")


def test_only_regular_files_of_the_archive_are_copied(tmp_path):
    """A link in the archive could lead anywhere."""
    archive, folder = tmp_path / "archive", tmp_path / "art"
    (archive / "logs").mkdir(parents=True)
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    for name in ("run.md", "step-0-result.md", "logs/step-0-attempt-1.log", "other.bin"):
        (archive / name).write_text(name)
    (archive / "step-1-result.md").symlink_to(tmp_path / "secret")
    artifacts.copy_archive(folder, archive)
    assert _names(folder) == ["logs/step-0-attempt-1.log", "run.md", "step-0-result.md"]


def test_the_end_of_a_log_is_bounded_text(tmp_path):
    """However long the log is and whatever its bytes are."""
    log = tmp_path / "log"
    log.write_bytes(b"\xff\x00" * 100_000 + b"\r\nlast\n")
    assert artifacts.tail(log).endswith("\ufffd\nlast\n")
    assert len(artifacts.tail(log)) == limits.OUTPUT_EXCERPT_CHARS
    assert artifacts.tail(tmp_path / "none") == ""
