"""Peaks of memory and disk, of a program and of all that it starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bench import footprint

MEGABYTE = 1_000_000
# Holds 60 MB, and a file of 8 MB that is gone in the end, until it has been seen often enough.
HEAVY = "import time; held = bytearray(60_000_000); open('f', 'wb').write(bytes(8_000_000)); time.sleep(1); import os; os.remove('f')"


def test_peaks_are_seen_in_the_whole_tree(tmp_path: Path) -> None:
    """The shell is small, its child is not; a file that is gone in the end was there."""
    command = ["sh", "-c", f'"{sys.executable}" -c "$0"; true', HEAVY]
    found = footprint.of(command, tmp_path, dict(os.environ), tmp_path)
    assert found.first < 20 * MEGABYTE
    assert 60 * MEGABYTE < found.tree < 300 * MEGABYTE
    assert 8 * MEGABYTE <= found.disk < 20 * MEGABYTE


def test_a_program_that_fails_is_no_measurement(tmp_path: Path) -> None:
    """Its last words are in the error."""
    with pytest.raises(RuntimeError, match="exit 3\nno luck"):
        footprint.of(["sh", "-c", "echo no luck; exit 3"], tmp_path, dict(os.environ), tmp_path)


def test_a_file_with_two_names_counts_once(tmp_path: Path) -> None:
    """As on the disk."""
    (tmp_path / "one").write_bytes(b"x" * 100_000)
    once = footprint.size(tmp_path)
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    assert footprint.size(tmp_path) == once
