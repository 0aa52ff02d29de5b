"""What a workspace holds that `git add` cannot be trusted with: nested repositories, special files, closed doors."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import AnyStr

from harness.errors import MACHINE_FAULTS, UsageError
from harness.model.ids import RefName
from harness.model.late import dataclass
from harness.vcs.git import check_time

_START_BYTES = 4096
_OID = re.compile(r"[0-9a-f]{40}")
_READ_BY_GIT = {".gitignore", ".gitattributes", ".gitmodules"}


@dataclass(slots=True)
class Survey:
    """Paths relative to the tree, as the file system spells them."""

    nested: list[str] = field(default_factory=list)
    """Directories with a `.git` of their own that are not inside another such directory."""
    repositories: list[str] = field(default_factory=list)
    """All directories with a `.git` of their own."""
    inside: list[str] = field(default_factory=list)
    """Regular files and links in nested repositories and submodules, less those in a `.git`."""
    special: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    depth: int = 0
    """Of folders in each other."""
    attributes: bool = False
    """Whether a file says how git converts others."""


def tree(root: Path, submodules: Collection[str] = ()) -> Survey:
    """Walks everything without following a link or opening a file; `submodules` count as nested even without `.git`.

    Raises OSError when the machine is at fault: a walk that is not whole would lose work.
    """
    seen = Survey()
    waiting = [("", False)]
    while waiting:
        check_time()
        directory, nested = waiting.pop()
        entries = listed(root / directory)
        if entries is None:
            seen.unreadable.append(directory)
            continue
        if directory and any(entry.name == ".git" for entry in entries):
            seen.repositories.append(directory)
            if not nested:
                seen.nested.append(directory)
            nested = True
        nested = nested or directory in submodules
        seen.depth = max(seen.depth, directory.count("/"))
        for entry in entries:
            path = f"{directory}/{entry.name}" if directory else entry.name
            if entry.name == ".git":
                continue
            seen.attributes = seen.attributes or entry.name == ".gitattributes"
            if entry.is_dir(follow_symlinks=False):
                waiting.append((path, nested))
            elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                seen.special.append(path)
            elif nested:
                seen.inside.append(path)
    return seen


def listed(directory: AnyStr | os.PathLike[AnyStr]) -> list[os.DirEntry[AnyStr]] | None:
    """The entries; None when the directory is closed to us."""
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError as error:
        if error.errno in MACHINE_FAULTS:
            raise
        return None


def is_empty(root: Path, path: str) -> bool:
    """Whether it is a directory in which, however deep, there is no file; none behind a link."""
    if not _is_directory(root / path) or not _has_room(root, path):
        return False
    return not any(files or ".git" in folders for _, folders, files in os.walk(root / path))


def is_free(root: Path, path: str) -> bool:
    """Whether nothing stands at a path, and something could."""
    return not os.path.lexists(root / path) and _has_room(root, path)


def _has_room(root: Path, path: str) -> bool:
    """Whether there are only directories above a path."""
    above = (root / folder for folder in Path(path).parents)
    return all(_is_directory(folder) or not os.path.lexists(folder) for folder in above)


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def remove_traps(root: Path, seen: Survey) -> None:
    """Takes away pipes and devices in the place of files that git itself reads: opening one would block for ever."""
    for path in seen.special:
        if os.path.basename(path) in _READ_BY_GIT:  # noqa: PTH119 - a string, not a path on this disk
            (root / path).unlink()
    for path in seen.repositories:
        entry = root / path / ".git"
        head = git_dir(entry) / "HEAD"
        if os.path.lexists(head) and not head.is_symlink() and not head.is_file():
            (head if entry.is_dir() and not entry.is_symlink() else entry).unlink()


def git_dir(entry: Path) -> Path:
    """Where a `.git` leads: a directory, or a file that names one."""
    if entry.is_dir():
        return entry
    try:
        named = start_of(entry).removeprefix(b"gitdir:").strip().replace(b"\0", b"")
    except OSError:
        return entry
    return entry.parent / os.fsdecode(named)


def head_commit(entry: Path) -> str | None:
    """The commit that a repository's HEAD names, directly or by a branch; nothing else of it is looked at."""
    where = git_dir(entry)
    name = "HEAD"
    with suppress(OSError, ValueError, UsageError):
        for _ in range(2):
            content = start_of(where / name).decode().strip()
            if _OID.fullmatch(content):
                return content
            name = RefName(content.removeprefix("ref:").strip())
    return None


def start_of(path: str | os.PathLike[str], size: int = _START_BYTES) -> bytes:
    """The first bytes of a file that may be anything by now: no link is followed and no pipe waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(handle, size)
    finally:
        os.close(handle)


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
