"""Fresh workspaces get what a checkout has and git does not: `.worktreeinclude`, copy patterns and links."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from harness.errors import ConfigInvalid
from harness.vcs.git import Git, text
from harness.vcs.private import PrivateDir
from harness.vcs.repo import Layout

INCLUDE_FILE = ".worktreeinclude"


def fill(
    layout: Layout,
    private: PrivateDir,
    tree: Path,
    copy: Sequence[str],
    link: Sequence[str],
    *,
    has: Callable[[str], bool] = lambda _path: False,
) -> list[str]:
    """Copies and links from the user's checkout; never out of either tree, never over a file that is there.

    `has` tells of a path that the start point has although no file is there. Returns what was to be brought.

    `copy` holds patterns in gitignore syntax that match untracked or ignored files; `link` holds plain paths.
    Raises ConfigInvalid for a link that leaves the checkout.
    """
    found = [path for path in _matching(private, layout, copy) if not has(path)]
    for path in found:
        _copy(layout.root, tree, path)
    for name in link:
        if not has(_inside(name)):
            _link(layout.root, tree, name)
    return [*found, *link]


def is_wanted(layout: Layout, copy: Sequence[str], link: Sequence[str]) -> bool:
    """Whether anything could be brought at all."""
    return bool(copy or link) or (layout.root / INCLUDE_FILE).is_file()


def untracked(git: Git, tree: Path) -> dict[str, str]:
    """Files of a fresh workspace that git would take for new work, and how to tell that nobody touched them since."""
    listed = git.run("ls-files", "--others", "--exclude-standard", "-z").items()
    return {path: _signature(tree / path) for path in map(os.fsdecode, listed)}


def untouched(tree: Path, prepared: Mapping[str, str]) -> list[str]:
    """Those that are as preparation left them; the others are the agent's work by now."""
    return [path for path, signature in prepared.items() if _signature(tree / path) == signature]


def _signature(path: Path) -> str:
    try:
        found = path.lstat()
    except OSError:
        return ""
    return f"{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}:{found.st_mode}"


def _matching(private: PrivateDir, layout: Layout, copy: Sequence[str]) -> list[str]:
    sources = [f"--exclude={pattern}" for pattern in copy]
    include = layout.root / INCLUDE_FILE
    if include.is_file():
        sources.append(f"--exclude-from={include}")
    if not sources:
        return []
    door = private.over_checkout(layout)
    listed = door.run("ls-files", "--others", "--ignored", "-z", *sources).items()
    return [os.fsdecode(path) for path in listed if not path.endswith(b"/")]


def _copy(root: Path, tree: Path, path: str) -> None:
    target = tree / path
    if not os.path.lexists(target) and _make_parents(tree, target):
        shutil.copy2(root / path, target, follow_symlinks=False)


def _link(root: Path, tree: Path, path: str) -> None:
    source, target = root / path, tree / path
    if os.path.lexists(source) and not os.path.lexists(target) and _make_parents(tree, target):
        target.symlink_to(source)


def _make_parents(tree: Path, target: Path) -> bool:
    """Makes the directories above; False when a file or a link is in the way: following it might lead outside."""
    for parent in reversed(target.relative_to(tree).parents):
        place = tree / parent
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            return False
        place.mkdir(exist_ok=True)
    return True


def _inside(name: str) -> str:
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or ".git" in parts:
        raise ConfigInvalid(
            f"link path {text(os.fsencode(name))!r:.120} leaves the checkout", hint="use a path relative to its root"
        )
    return name
