"""What the agent did with git in its worktree: looked at, kept, never trusted."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from harness.errors import MACHINE_FAULTS, UsageError
from harness.model.changes import Workspace
from harness.model.ids import CommitId, RefName
from harness.vcs import removal
from harness.vcs.refs import Refs
from harness.vcs.survey import start_of

_OID = re.compile(r"[0-9a-f]{40}")


def disarm(workspace: Workspace, common_dir: Path) -> None:
    """Unlinks what is no plain ref where the agent could write refs.

    Git and libgit2 would wait on a pipe, follow a link, trip over garbage and respect a forgotten lock.
    """
    if workspace.branch is None:
        return
    for path in (common_dir / workspace.branch).parent.rglob("*"):
        mode = path.lstat().st_mode
        if not stat.S_ISDIR(mode) and not (stat.S_ISREG(mode) and _is_ref(path)):
            path.unlink()


def _is_ref(path: Path) -> bool:
    return bool(_OID.fullmatch(start_of(path).decode("ascii", "replace").removesuffix("\n"))) and path.suffix != ".lock"


def sweep(workspace: Workspace, common_dir: Path, trash: Path) -> None:
    """Leaves nothing but the work branch itself where the agent could write refs and reflogs; its tips are kept by now."""
    if workspace.branch is None:
        return
    disarm(workspace, common_dir)
    branch = common_dir / workspace.branch
    left = (
        [path for path in branch.parent.iterdir() if path != branch or path.is_dir()] if branch.parent.is_dir() else []
    )
    logs = (common_dir / "logs" / workspace.branch).parent
    if left or os.path.lexists(logs):
        removal.discard(*left, logs, trash=trash)
        removal.remove_if_empty(trash)


def tips(workspace: Workspace, refs: Refs, own: Mapping[RefName, CommitId]) -> tuple[CommitId, ...]:
    """Where the agent left the worktree's HEAD, whatever it names, and the refs of its own; the start point is none."""
    found = [_head(workspace.admin / "HEAD", refs, own), *own.values()]
    return tuple(tip for tip in dict.fromkeys(found) if tip and tip != workspace.start)


def own_refs(workspace: Workspace, refs: Refs) -> dict[RefName, CommitId]:
    """The work branch and what else the agent made in the one directory of refs that it may write."""
    return refs.under(f"{workspace.branch.rpartition('/')[0]}/") if workspace.branch else {}


def replaced_link(workspace: Workspace) -> str | None:
    """A sentence when the worktree's `.git` file is not the one that the harness wrote."""
    entry = workspace.path / ".git"
    try:
        is_file = stat.S_ISREG(entry.lstat().st_mode)
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
