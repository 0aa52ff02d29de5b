"""The parent as bytes: what a run must leave exactly as it found it."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from tests.support.evidence import Repository

OURS = ("refs/heads/orchestrix/", "refs/orchestrix/")
OF_CHECKOUT = re.compile(r"\.git|\.orchestrix")
# Objects only grow, refs are compared by name, and the rest of these are the harness' own.
OF_GIT_DIR = re.compile(r"objects|refs|packed-refs|logs/refs/(heads/)?orchestrix|worktrees/orchestrix[.-][^/]*")

Fingerprint = dict[str, str]


def fingerprint(root: Path) -> Fingerprint:
    """Files, index, HEAD, config, hooks, stash, reflogs and every ref outside the harness' own, by name."""
    repo = Repository(root)
    found = {f"file {name}": value for name, value in _files(repo.root, OF_CHECKOUT)}
    found |= {f"git {name}": value for name, value in _files(repo.git_dir, OF_GIT_DIR)}
    if repo.common_dir != repo.git_dir:
        found |= {f"common {name}": value for name, value in _files(repo.common_dir, OF_GIT_DIR)}
    return found | {f"ref {name}": at for name, at in repo.refs.items() if not name.startswith(OURS)}


def changes(before: Fingerprint, after: Fingerprint) -> Iterator[tuple[str, str]]:
    """What differs, and how."""
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield name, "is gone"
        elif name not in before:
            yield name, "is new"
        elif before[name] != after[name]:
            yield name, "changed"


def _files(top: Path, skipped: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    for folder, directories, names in os.walk(top):
        inside = Path(folder).relative_to(top)
        directories[:] = [name for name in directories if not skipped.fullmatch(str(inside / name))]
        links = [name for name in directories if (top / inside / name).is_symlink()]
        for name in [*names, *links]:
            if not skipped.fullmatch(str(inside / name)):
                yield str(inside / name), _print(top / inside / name)


def _print(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"{mode:o} -> {path.readlink()}"
    content = path.read_bytes() if stat.S_ISREG(mode) else b""
    return f"{mode:o} {hashlib.sha256(content).hexdigest()}"
