"""What the agent did with git in its workspace: looked at, kept, never trusted."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from harness import namespace
from harness.errors import MACHINE_FAULTS
from harness.model import limits
from harness.model.changes import Workspace
from harness.model.ids import CommitId
from harness.vcs import step_git
from harness.vcs.survey import start_of

_OID = re.compile(rb"[0-9a-f]{40}")
_STASH = b"refs/stash"
# What the agent fetched is somebody else's work.
_FETCHED = b"refs/remotes/"


def disarm(workspace: Workspace, shared_objects: Path) -> str | None:
    """Leaves only plain files and folders among the agent's objects; a sentence when there is no such directory.

    Git would wait on a pipe and follow a link, and read whatever store the agent named as an alternate.
    """
    objects = step_git.own_objects(workspace)
    if objects.is_symlink() or not objects.is_dir():
        return "the agent removed or replaced its object directory: its own commits are not kept, the files are"
    waiting = [os.fspath(objects)]
    while waiting:
        for entry in _entries(waiting.pop()):
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                os.unlink(entry)  # noqa: PTH108 - for every step, as all of this
    info = objects / "info"
    if info.is_dir():
        aside = info / "alternates.new"
        aside.unlink(missing_ok=True)
        aside.write_bytes(step_git.alternates(shared_objects))
        aside.replace(info / "alternates")
    return None


def clear_branch(workspace: Workspace, common_dir: Path) -> None:
    """Unlinks what is no plain ref beside the published branch: without a sandbox an agent could put a pipe there."""
    if workspace.branch is None:
        return
    waiting = [f"{common_dir}/{workspace.branch.rpartition('/')[0]}"]
    while waiting:
        for entry in _entries(waiting.pop()):
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif not entry.is_file(follow_symlinks=False) or not _OID.fullmatch(_start(entry.path)):
                os.unlink(entry)  # noqa: PTH108 - as above


def tips(workspace: Workspace, remembered: Path) -> tuple[CommitId, ...]:
    """Where the agent left HEAD and every ref that it made or moved, stashes too; the start point is none.

    `remembered` holds the refs as the workspace began with them. What these name may be no commit.
    """
    refs = _refs(workspace.admin)
    begun = step_git.parsed(remembered)
    moved = [at for name, at in sorted(refs.items()) if begun.get(name) != at and not name.startswith(_FETCHED)]
    found = [_head(workspace.admin, refs), *moved, *_stashed(workspace.admin)]
    named = (CommitId(at.decode()) for at in dict.fromkeys(found) if at)
    return tuple(tip for tip in named if tip != workspace.start)[: limits.AGENT_TIPS]


def replaced_link(workspace: Workspace) -> str | None:
    """A sentence when the workspace's `.git` file is not the one that the harness wrote."""
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


def _refs(git_dir: Path) -> dict[bytes, bytes]:
    """Every ref that holds an id, loose over packed; git is not asked, for it would wait on a pipe."""
    found: dict[bytes, bytes] = {}
    top = os.fspath(git_dir)
    with suppress(OSError):
        file = git_dir / "packed-refs"
        if stat.S_ISREG(file.lstat().st_mode) and file.lstat().st_size < limits.AGENT_REFS_BYTES:
            found = {name: at for name, at in step_git.parsed(file).items() if _OID.fullmatch(at)}
    waiting = [f"{top}/refs"]
    while waiting and len(found) < limits.AGENT_REFS:
        for entry in _entries(waiting.pop()):
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif entry.is_file(follow_symlinks=False) and not entry.name.endswith(".lock"):
                content = _start(entry.path)
                if _OID.fullmatch(content):
                    found[os.fsencode(entry.path.removeprefix(f"{top}/"))] = content
    return found


def _head(git_dir: Path, refs: dict[bytes, bytes]) -> bytes | None:
    content = _start(f"{git_dir}/HEAD")
    return content if _OID.fullmatch(content) else refs.get(content.removeprefix(b"ref:").strip())


def _stashed(git_dir: Path) -> list[bytes]:
    """All but the last stash stand in the log of the stash alone."""
    lines = _start(f"{git_dir}/logs/{os.fsdecode(_STASH)}", limits.AGENT_REFS_BYTES).splitlines()
    words = (line.split(b" ", 2) for line in lines)
    return [two[1] for two in words if len(two) > 1 and _OID.fullmatch(two[1])]


def _start(path: str, size: int = 4096) -> bytes:
    try:
        return start_of(path, size).strip()
    except OSError as error:
        if error.errno in MACHINE_FAULTS:
            raise
        return b""


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """None where it is gone or closed."""
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError), os.scandir(folder) as entries:
        return list(entries)
    return []
