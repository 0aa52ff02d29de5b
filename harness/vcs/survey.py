"""What a workspace holds that `git add` cannot be trusted with: nested repositories, special files, closed doors."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_READ_BY_GIT = {".gitignore", ".gitattributes", ".gitmodules"}


@dataclass(slots=True)
class Survey:
    """Paths relative to the tree, as the file system spells them."""

    nested: list[str] = field(default_factory=list)
    special: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def tree(root: Path, *, under: str = "", keep_files: bool = False) -> Survey:
    """Walks without following a link; directories that hold a `.git` are listed and, at the top level, not entered.

    With `keep_files` the walk is inside a nested repository: everything but `.git` is listed as plain files.
    """
    seen = Survey()
    waiting = [under]
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(root / directory) as entries:
                listed = list(entries)
        except OSError:
            seen.unreadable.append(directory)
            continue
        if directory != under and not keep_files and any(entry.name == ".git" for entry in listed):
            seen.nested.append(directory)
            continue
        for entry in listed:
            path = f"{directory}/{entry.name}" if directory else entry.name
            if entry.name == ".git":
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                seen.special.append(path)
            elif keep_files:
                seen.files.append(path)
    return seen


def remove_traps(root: Path, special: Iterable[str]) -> None:
    """Unlinks pipes and devices in the place of files that git itself reads: opening one would block for ever."""
    for path in special:
        if os.path.basename(path) in _READ_BY_GIT:  # noqa: PTH119 - a string, not a path on this disk
            (root / path).unlink()


def open_doors(root: Path) -> None:
    """Gives the owner read access wherever that is possible; git records the executable bit alone, which stays."""
    waiting = [root]
    while waiting:
        directory = waiting.pop()
        with suppress(OSError):
            _add_mode(directory, stat.S_IRWXU)
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False):
                        _add_mode(Path(entry.path), stat.S_IRUSR)


def _add_mode(path: Path, bits: int) -> None:
    mode = stat.S_IMODE(path.lstat().st_mode)
    if mode & bits != bits:
        path.chmod(mode | bits)
