"""Whatever somebody filled goes: from other file systems, at any depth, with two at it, and never through a link."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest

from harness.errors import EnvironmentProblem
from harness.model import limits
from harness.vcs import places, removal
from harness.vcs.disk import DiskSpace


def _filled(folder: Path) -> Path:
    """Forty directories beside each other, one very deep, one closed, and links that lead out."""
    for number in range(40):
        (folder / str(number) / "inner").mkdir(parents=True)
        (folder / str(number) / "inner" / "file").write_text("x")
    deep = folder
    for _ in range(200):
        deep = deep / "deep"
        deep.mkdir()
    (folder / "out").symlink_to(folder.parent)
    (folder / "0" / "inner").chmod(0)
    return folder


def test_two_may_take_the_same_trash_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one finds gone is what it wanted; a name that an earlier process gave is passed over."""
    precious = tmp_path / "precious"
    precious.write_text("x")
    trash = tmp_path / "trash"
    (trash / f"{os.getpid()}-0" / "left").mkdir(parents=True)
    monkeypatch.setattr(removal, "_numbers", iter(range(100_000)))
    removal.put(_filled(tmp_path / "full"), tmp_path / "nothing", trash=trash)
    assert not (tmp_path / "full").exists()
    monkeypatch.setattr(removal, "_taking_apart", nullcontext())  # as two processes
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(removal.empty, trash) for _ in range(2)]:
            done.result()
    removal.empty(trash)
    assert not trash.exists()
    assert precious.is_file()


def test_what_stands_on_another_file_system_goes_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be renamed across; without a second trash that is told."""
    real = os.rename

    def rename(source: str, target: str) -> None:
        if target.startswith(str(tmp_path / "trash")):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    (tmp_path / "trash").mkdir()
    full = _filled(tmp_path / "full")
    with pytest.raises(EnvironmentProblem, match="cannot be removed: Invalid cross-device link"):
        removal.put(full, trash=tmp_path / "trash")
    removal.put(full, trash=tmp_path / "trash", elsewhere=tmp_path / "second")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "home") == ["trash"]


def test_a_roomy_directory_is_private_wherever_it_stands(tmp_path: Path) -> None:
    """The attribute is a wish: a file system that does not know it has an ordinary directory."""
    for _ in range(2):
        places.make_roomy(tmp_path / "above" / "roomy")
    for folder in (tmp_path / "above", tmp_path / "above" / "roomy"):
        assert folder.stat().st_mode & 0o777 == 0o700
    places.make_roomy(Path("/proc/self"))


@pytest.mark.parametrize(
    ("before", "now", "short"),
    [
        ((10**12, 10**6), (10**12, 10**6), False),
        ((10**12, 10**6), (10**12 - limits.TRASH_BYTES, 10**6), True),
        ((10**12, 10**6), (10**12, 10**6 - limits.TRASH_FILES - 1), True),
        ((1_600, 0), (1_501, 0), False),
        ((1_600, 0), (1_500, 0), True),
        ((0, 0), (0, 0), True),
    ],
)
def test_room_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: tuple[int, int], now: tuple[int, int], short: bool
) -> None:
    """By bytes, by files, by the share of what there was; and where nothing can be seen."""
    room = DiskSpace(tmp_path / "gone")
    room.look()
    assert room.is_low()
    monkeypatch.setattr(DiskSpace, "_free", lambda _: before)
    room.look()
    monkeypatch.setattr(DiskSpace, "_free", lambda _: now)
    assert room.is_low() == short
