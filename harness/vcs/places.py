"""Where a run's private things stand: trees for agents, and beside them, out of their reach, what the harness keeps."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from pathlib import Path

from harness.errors import Busy, EnvironmentProblem, GitFailed, UsageError
from harness.model.ids import RunId
from harness.model.late import dataclass

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_LOCK_PAUSE_S = 0.01
_REMEMBERED = 256
# linux/fs.h and ext4.h; other systems refuse the request, and then nothing is lost.
_GET_FLAGS, _SET_FLAGS, _TOP_DIRECTORY = 0x80086601, 0x40086602, 0x00020000
_FLAGS = struct.Struct("i")


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Git does not say why it could not write a file: the disk is asked, and raises OSError if it is the cause."""
    try:
        yield
    except GitFailed:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(bytes(4096))
        raise


@dataclass(frozen=True)
class Place:
    """One workspace's files. Only `tree` is for the agent."""

    run: RunId
    name: str
    run_dir: Path
    common_dir: Path

    @cached_property
    def tree(self) -> Path:
        return self.run_dir / "trees" / self.name

    @cached_property
    def index(self) -> Path:
        return self.run_dir / "kept" / f"{self.name}.index"

    @cached_property
    def card(self) -> Path:
        """Written last: where it is, the workspace is whole."""
        return self.run_dir / "kept" / f"{self.name}.json"

    @cached_property
    def private(self) -> Path:
        """Files for the child that are no part of its work: prompt, contract, its own git objects."""
        return self.run_dir / "private" / self.name

    @cached_property
    def layers(self) -> Path:
        """What an overlay workspace is made of besides the shared checkout."""
        return self.run_dir / "layers" / self.name

    @cached_property
    def upper(self) -> Path:
        """Exactly what differs from the shared checkout."""
        return self.layers / "upper"

    @cached_property
    def work(self) -> Path:
        """The kernel's own."""
        return self.layers / "work"

    @cached_property
    def trash(self) -> Path:
        """Of the whole run: what is in it is no workspace any more."""
        return self.run_dir / "trash"

    @cached_property
    def admin_trash(self) -> Path:
        """For what an earlier version left in the git dir, where that is on another file system than the run."""
        return git_trash(self.run_dir.parent, self.common_dir)

    @cached_property
    def admin(self) -> Path:
        """The workspace's git dir; the user's repository holds nothing of it."""
        return self.private / "git"

    @cached_property
    def refs(self) -> Path:
        """The refs that the workspace's git dir began with."""
        return self.run_dir / "kept" / f"{self.name}.refs"

    @cached_property
    def entry(self) -> Path:
        """Where earlier versions had a worktree's git dir; run ids hold no dot, so that two runs never share it."""
        return self.common_dir / "worktrees" / f"orchestrix.{self.run}.{self.name}"


@lru_cache(_REMEMBERED)
def place(state_dir: Path, common_dir: Path, run: RunId, name: str) -> Place:
    """Checks the name: it becomes a file name and part of a worktree's id."""
    if not _NAME.fullmatch(name) or name.endswith((".lock", ".")) or ".." in name:
        raise UsageError(f"{name!r:.120} is not a workspace name", hint="use letters, digits, dot, dash, underscore")
    return Place(run, name, state_dir / run, common_dir)


def git_trash(state_dir: Path, common_dir: Path) -> Path:
    return common_dir / f"orchestrix-trash.{_digest(state_dir)}"


@lru_cache(_REMEMBERED)
def _digest(state_dir: Path) -> str:
    return hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:12]


def require_own(home: Path) -> None:
    """Raises EnvironmentProblem where a state home is another user's, or every user could replace what is in it."""
    if not home.exists():
        return
    advice = "set `state_home` or XDG_STATE_HOME to a folder of your own"
    me, mode = os.geteuid(), home.stat().st_mode
    others = {home.lstat().st_uid, home.stat().st_uid} - {me}
    if others:
        raise EnvironmentProblem(
            f"the state home {home} belongs to user {max(others)}, and you are user {me}",
            hint=f"{advice}; after sudo, use sudo -H",
        )
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise EnvironmentProblem(
            f"every user can change what is in the state home {home}", hint=f"chmod 700, or {advice}"
        )


def make_private(directory: Path | str) -> None:
    """Makes a directory and those above it that are missing, closed to everybody else."""
    try:
        os.mkdir(directory, 0o700)  # noqa: PTH102 - a string where it is called often
    except FileNotFoundError:
        make_private(Path(directory).parent)
        make_private(directory)
    except FileExistsError:
        if not os.path.isdir(directory):  # noqa: PTH112 - as above
            raise


def make_roomy(directory: Path) -> None:
    """Makes one like that whose subdirectories are far apart on the disk, where the file system can do that.

    ext4 gives an inode that was deleted within the last minute to nobody, and looks at each of them again for every
    new file nearby: thousands of files right after thousands were removed take many times as long.
    """
    make_private(directory)
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            chosen = flags(handle)
            if not chosen & _TOP_DIRECTORY:
                fcntl.ioctl(handle, _SET_FLAGS, _FLAGS.pack(chosen | _TOP_DIRECTORY))
        finally:
            os.close(handle)


def flags(handle: int) -> int:
    """What `lsattr` shows of an open file, as linux/fs.h numbers it; raises OSError where there is no such thing."""
    return int(_FLAGS.unpack(fcntl.ioctl(handle, _GET_FLAGS, bytes(_FLAGS.size)))[0])


def found(state_dir: Path, common_dir: Path) -> list[Place]:
    """Every workspace of which anything is on disk, whole or not."""
    names: set[tuple[str, str]] = set()
    for run in _listed(state_dir):
        for folder in ("trees", "layers"):
            names.update((run, name) for name in _listed(state_dir / run / folder))
        names.update((run, kept.rpartition(".")[0]) for kept in _listed(state_dir / run / "kept"))
    for admin in _listed(common_dir / "worktrees"):
        _, _, rest = admin.partition("orchestrix.")
        run, dot, name = rest.partition(".")
        if dot and names_tree(common_dir / "worktrees" / admin, state_dir / run / "trees" / name):
            names.add((run, name))
    return [place(state_dir, common_dir, RunId(run), name) for run, name in sorted(names)]


def half_made(state_dir: Path, common_dir: Path, run: RunId) -> list[Path]:
    """What a run of an earlier version that died left in the git dir."""
    return list(common_dir.glob(f"orchestrix-new.{_digest(state_dir)}.{run}.*"))


def names_tree(admin: Path, tree: Path) -> bool:
    """Whether a worktree's entry belongs to this tree."""
    try:
        return (admin / "gitdir").read_bytes().rstrip(b"\n") == os.fsencode(tree / ".git")
    except OSError:
        return False


def _listed(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 - names are all that is wanted
    except (FileNotFoundError, NotADirectoryError):
        return []


@contextmanager
def exclusive(file: Path, patience_s: float) -> Iterator[None]:
    """Holds a lock file, across threads and processes; raises Busy when somebody else keeps it that long."""
    deadline = time.monotonic() + patience_s
    while (handle := taken(file)) is None:
        if time.monotonic() > deadline:
            raise Busy(f"{file} has been held for {patience_s:g} seconds", hint="end the process that holds it")
        time.sleep(_LOCK_PAUSE_S)
    try:
        yield
    finally:
        os.close(handle)


def taken(file: Path) -> int | None:
    """A descriptor that holds a lock file until it is closed; None when somebody else does."""
    make_private(file.parent)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle
