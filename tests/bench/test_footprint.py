"""Peaks of memory and disk, of a program and of all that it starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bench import footprint
from bench.footprint import OFTEN_S, Footprint, Watcher
from bench.timing import spend

MEGABYTE = 1_000_000
# Holds 60 MB, and a file of 8 MB that is gone in the end, until it has been seen often enough.
HEAVY = "import time; held = bytearray(60_000_000); open('f', 'wb').write(bytes(8_000_000)); time.sleep(1); import os; os.remove('f')"


def test_peaks_are_seen_in_the_whole_tree(tmp_path: Path) -> None:
    """The shell is small, its child is not; a file that is gone in the end was there."""
    watcher = Watcher(OFTEN_S, tmp_path)
    spend(["sh", "-c", f'"{sys.executable}" -c "$0"; true', HEAVY], tmp_path, dict(os.environ), watcher.watch)
    assert watcher.seen.disk is not None
    assert 0 < watcher.seen.first < 20 * MEGABYTE
    assert 60 * MEGABYTE < watcher.seen.tree < 300 * MEGABYTE
    assert 8 * MEGABYTE <= watcher.seen.disk < 20 * MEGABYTE


def test_the_peak_of_the_first_process_needs_no_look_at_the_right_moment(tmp_path: Path) -> None:
    """What it held between two looks is known at the next one, and the sum was no less; of no folder nothing is said."""
    watcher = Watcher(1.0)
    short = "import time; time.sleep(.3); held = bytearray(60_000_000); del held; time.sleep(1.2)"
    spend([sys.executable, "-c", short], tmp_path, dict(os.environ), watcher.watch)
    assert 60 * MEGABYTE < watcher.seen.first <= watcher.seen.tree
    assert watcher.seen.disk is None


def test_peaks_of_several_runs() -> None:
    """The highest of each; a run that did not look at the disk says nothing about it."""
    assert Footprint(1, 5, 7).peaks(Footprint(2, 3)) == Footprint(2, 5, 7)
    assert Footprint(1, 5, 7).peaks(Footprint(0, 0, 9)) == Footprint(1, 5, 9)
    assert Footprint(1, 5).peaks(Footprint(1, 5)) == Footprint(1, 5, None)


def test_a_file_with_two_names_counts_once(tmp_path: Path) -> None:
    """As on the disk."""
    (tmp_path / "one").write_bytes(b"x" * 100_000)
    once = footprint.size(tmp_path)
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    assert footprint.size(tmp_path) == once
