"""What the agent did with git in its worktree: looked at, kept, never trusted."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from harness import namespace
from harness.errors import MACHINE_FAULTS, UsageError
from harness.model.changes import Workspace
from harness.model.ids import CommitId, RefName
from harness.vcs import removal
from harness.vcs.places import Place
from harness.vcs.refs import Refs
from harness.vcs.survey import start_of

_OID = re.compile(r"[0-9a-f]{40}")


def disarm(workspace: Workspace, common_dir: Path) -> None:
    """Unlinks what is no plain ref where the agent could write refs.

    Git and libgit2 would wait on a pipe, follow a link, trip over garbage and respect a forgotten lock.
    """
    if workspace.branch is None:
        return
    waiting = [f"{common_dir}/{workspace.branch.rpartition('/')[0]}"]
    while waiting:
        for entry in _entries(waiting.pop()):
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif not _is_ref(entry):
                os.unlink(entry)  # noqa: PTH108 - for every step, as all of this


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """None where it is gone or closed."""
    with suppress(FileNotFoundError, PermissionError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _is_ref(entry: os.DirEntry[str]) -> bool:
    if not entry.is_file(follow_symlinks=False) or entry.name.endswith(".lock"):
        return False
    return bool(_OID.fullmatch(start_of(entry).decode("ascii", "replace").removesuffix("\n")))


def sweep(workspace: Workspace, place: Place) -> None:
    """Leaves nothing but the work branch itself where the agent could write refs and reflogs; its tips are kept by now."""
    if workspace.branch is None:
        return
    folder, _, name = workspace.branch.rpartition("/")
    entries = _entries(f"{place.common_dir}/{folder}")
    left = [Path(entry) for entry in entries if entry.name != name or not _is_ref(entry)]
    logs = f"{place.common_dir}/logs/{folder}"
    if not removal.remove_if_empty(logs):
        left.append(Path(logs))
    removal.put(*left, trash=place.trash, elsewhere=place.admin_trash)


def tips(workspace: Workspace, refs: Refs, own: Mapping[RefName, CommitId]) -> tuple[CommitId, ...]:
    """Where the agent left the worktree's HEAD, whatever it names, and the refs of its own; the start point is none."""
    found = [_head(workspace.admin / "HEAD", refs, own), *own.values()]
    return tuple(tip for tip in dict.fromkeys(found) if tip and tip != workspace.start)


def own_refs(workspace: Workspace, refs: Refs) -> dict[RefName, CommitId]:
    """The work branch and what else the agent made in the one directory of refs that it may write."""
    return refs.under(f"{workspace.branch.rpartition('/')[0]}/") if workspace.branch else {}


def replaced_link(workspace: Workspace) -> str | None:
    """A sentence when the worktree's `.git` file is not the one that the harness wrote."""
    entry = f"{namespace.seen(workspace.path)}/.git"
    try:
        is_file = stat.S_ISREG(os.lstat(entry).st_mode)
        content = start_of(entry) if is_file else b""
    except FileNotFoundError:
        return "the agent removed the workspace's .git file"
    except OSError as error:
        return f"the workspace's .git file is unreadable: {error.strerror}"
    if is_file and content == b"gitdir: " + os.fsencode(workspace.admin) + b"\n":
        return None
    return "the agent replaced the workspace's .git: commits made through it are not kept, the files are"


def _head(path: Path, refs: Refs, own: Mapping[RefName, CommitId]) -> CommitId | None:
    try:
        content = start_of(path).decode("utf-8", "replace").strip()
    except OSError as error:
        if error.errno in MACHINE_FAULTS:
            raise
        return None
    if _OID.fullmatch(content):
        return CommitId(content)
    try:
        name = RefName(content.removeprefix("ref:").strip())
        return own.get(name) or refs.read(name)
    except UsageError:
        return None
