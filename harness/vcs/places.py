"""Where a run's private things stand: trees for agents, and beside them, out of their reach, what the harness keeps."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from harness.errors import Busy, UsageError
from harness.model.ids import RunId
from harness.model.late import dataclass

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_LOCK_PATIENCE_S = 60.0
_LOCK_PAUSE_S = 0.01


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
        return self.run_dir / "trash" / self.name

    @cached_property
    def aside(self) -> str:
        """How half-made admin directories of this state directory, and of no other, are called."""
        return f"orchestrix-new.{self._digest}."

    @cached_property
    def admin_trash(self) -> Path:
        return self.common_dir / f"orchestrix-trash.{self._digest}"

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(os.fsencode(self.run_dir.parent)).hexdigest()[:12]

    @cached_property
    def admin(self) -> Path:
        """Run ids hold no dot, so that two runs never share an admin name."""
        return self.common_dir / "worktrees" / f"orchestrix.{self.run}.{self.name}"


def place(state_dir: Path, common_dir: Path, run: RunId, name: str) -> Place:
    """Checks the name: it becomes a file name and part of a worktree's id."""
    if not _NAME.fullmatch(name) or name.endswith((".lock", ".")) or ".." in name:
        raise UsageError(f"{name!r:.120} is not a workspace name", hint="use letters, digits, dot, dash, underscore")
    return Place(run, name, state_dir / run, common_dir)


def make_private(directory: Path) -> None:
    """Makes a directory and those above it that are missing, closed to everybody else."""
    if directory.is_dir():
        return
    for missing in reversed([place for place in (directory, *directory.parents) if not place.is_dir()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def found(state_dir: Path, common_dir: Path) -> list[Place]:
    """Every workspace of which anything is on disk, whole or not."""
    names: set[tuple[str, str]] = set()
    for run_dir in state_dir.iterdir() if state_dir.is_dir() else ():
        names.update((run_dir.name, tree.name) for tree in _listed(run_dir / "trees"))
        names.update((run_dir.name, kept.stem) for kept in _listed(run_dir / "kept"))
        names.update((run_dir.name, layers.name) for layers in _listed(run_dir / "layers"))
    for admin in _listed(common_dir / "worktrees"):
        _, _, rest = admin.name.partition("orchestrix.")
        run, dot, name = rest.partition(".")
        if dot and names_tree(admin, state_dir / run / "trees" / name):
            names.add((run, name))
    return [place(state_dir, common_dir, RunId(run), name) for run, name in sorted(names)]


def names_tree(admin: Path, tree: Path) -> bool:
    """Whether a worktree's admin directory belongs to this tree."""
    try:
        return (admin / "gitdir").read_bytes().rstrip(b"\n") == os.fsencode(tree / ".git")
    except OSError:
        return False


def _listed(directory: Path) -> list[Path]:
    return list(directory.iterdir()) if directory.is_dir() else []


@contextmanager
def repository_lock(state_dir: Path) -> Iterator[None]:
    """One change of worktree bookkeeping at a time, across threads and processes; raises Busy after a minute."""
    with exclusive(state_dir / "lock", _LOCK_PATIENCE_S):
        yield


@contextmanager
def exclusive(file: Path, patience_s: float) -> Iterator[None]:
    """Holds a lock file, across threads and processes; raises Busy when somebody else keeps it that long."""
    make_private(file.parent)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Busy(
                        f"{file} has been held for {patience_s:g} seconds", hint="end the process that holds it"
                    ) from None
                time.sleep(_LOCK_PAUSE_S)
        yield
    finally:
        os.close(handle)
