"""Folders that stay until the end, each apart from the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.ground import Ground


def test_nothing_goes_before_the_end(tmp_path: Path) -> None:
    """Each folder is a new one; at the end the acts come first, then everything is removed."""
    seen: list[bool] = []
    with Ground(str(tmp_path)) as ground:
        first, second = ground.folder(), ground.folder()
        (first / "file").write_text("x")
        ground.at_end(lambda: seen.append((first / "file").exists()))
        assert first != second
        assert seen == []
    assert seen == [True]
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    """As if it had come to its end."""
    with pytest.raises(KeyboardInterrupt), Ground(str(tmp_path)) as ground:
        raise KeyboardInterrupt(ground.folder())
    assert list(tmp_path.iterdir()) == []


def test_a_small_disk_is_cleared(tmp_path: Path) -> None:
    """Then there is a new beginning."""
    with Ground(str(tmp_path)) as ground:
        old = ground.folder()
        ground.clear()
        assert not old.exists()
        assert ground.folder().is_dir()
    assert list(tmp_path.iterdir()) == []
