"""Shared checkouts: made once for a tree and the user's settings, never written to, shared by runs and processes.

Whoever uses one holds a shared lock on its card until its process ends; only what nobody holds is ever evicted.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import EnvironmentProblem
from harness.model import limits
from harness.model.ids import TreeId
from harness.vcs import places, removal
from harness.vcs.landmarks import Landmarks
from harness.vcs.objects import Objects
from harness.vcs.private import PrivateDir

_PATIENCE_S = 900.0


@dataclass(frozen=True, slots=True)
class Template:
    """One shared checkout; `second` is when its last file was written."""

    tree: TreeId
    path: Path
    second: int

    @property
    def files(self) -> Path:
        return self.path / "tree"

    @property
    def index(self) -> Path:
        return self.path / "index"


class Templates:
    """The shared checkouts of one repository, as one process uses them."""

    def __init__(self, folder: Path, objects: Objects, landmarks: Landmarks) -> None:
        self._folder = folder
        self._objects = objects
        self._landmarks = landmarks
        self._held: dict[str, Template] = {}
        self._handles: list[int] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._handles)

    def nearest(self, private: PrivateDir, tree: TreeId) -> Template:
        """One in use that differs in few paths, and in no attribute, from the tree; else the tree's own."""
        settings = private.settings
        with self._lock:
            exact = self._held.get(_name(tree, settings))
            for template in [exact] if exact else reversed(self._held.values()):
                if template.path.name.endswith(settings) and self._is_near(template.tree, tree):
                    return template
            return self._open(private, tree, settings)

    def having(self, private: PrivateDir, tree: TreeId) -> Template:
        """The tree's own, also after the process that made it is gone."""
        settings = private.settings
        with self._lock:
            return self._held.get(_name(tree, settings)) or self._open(private, tree, settings)

    def evict(self) -> None:
        """Removes the longest unused ones that nobody holds until the rest is within its limit."""
        if sum(1 for _ in self._cards()) <= 1:
            return
        with self._lock, places.exclusive(self._folder / "lock", _PATIENCE_S):
            found = sorted(self._cards(), key=lambda card: card.stat().st_mtime_ns)
            sizes = {card: _size(card.parent) for card in found}
            excess = sum(sizes.values()) - limits.TEMPLATE_BYTES
            for card in found:
                if excess > 0 and card.parent.name not in self._held and _is_free(card):
                    removal.discard(card.parent, self._folder / "trash")
                    excess -= sizes[card]

    def _cards(self) -> Iterator[Path]:
        return self._folder.glob("*/card.json")

    def _is_near(self, one: TreeId, other: TreeId) -> bool:
        if one == other:
            return True
        if self._landmarks.of(one).attributes != self._landmarks.of(other).attributes:
            return False
        return len(self._objects.changes(one, other)) <= limits.TEMPLATE_DELTA

    def _open(self, private: PrivateDir, tree: TreeId, settings: str) -> Template:
        path = self._folder / _name(tree, settings)
        card = path / "card.json"
        with places.exclusive(self._folder / "lock", _PATIENCE_S):
            if card.exists() and not _is_intact(private, path):
                if not _is_free(card):
                    raise EnvironmentProblem(
                        f"the shared checkout {path} was written to, and another run uses it",
                        hint="end that run, or use `--workspace checkout`",
                    )
                card.unlink()
            if not card.exists():
                _make(private, tree, path, self._folder / "trash")
            os.utime(card)
            handle = os.open(card, os.O_RDONLY | os.O_CLOEXEC)
            self._handles.append(handle)
            fcntl.flock(handle, fcntl.LOCK_SH)
        self._held[path.name] = Template(tree, path, json.loads(card.read_text(encoding="utf-8"))["second"])
        return self._held[path.name]


def _name(tree: TreeId, settings: str) -> str:
    return f"{tree}-{settings}"


def _make(private: PrivateDir, tree: TreeId, path: Path, trash: Path) -> None:
    """The card comes last: without one the directory is what a crash left."""
    if os.path.lexists(path):
        removal.discard(path, trash)
    removal.sweep(trash)
    places.make_private(path / "tree")
    private.git(path / "tree", path / "index").run("read-tree", "--reset", "-u", tree)
    second = int((path / "index").stat().st_mtime)
    aside = path / "card.new"
    aside.write_text(json.dumps({"second": second}), encoding="utf-8")
    aside.rename(path / "card.json")


def _is_intact(private: PrivateDir, path: Path) -> bool:
    """Looked at once by each process: a program without a sandbox may write anywhere."""
    differing = private.git(path / "tree", path / "index").run("ls-files", "--modified", "--others", "-z")
    return not differing.out


def _is_free(card: Path) -> bool:
    handle = os.open(card, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def _size(path: Path) -> int:
    """Bytes on disk; a template never changes, so it is counted once."""
    known = path / "size"
    if not known.exists():
        total = sum(
            os.lstat(os.path.join(folder, name)).st_blocks * 512  # noqa: PTH118 - very many files
            for folder, _, names in os.walk(path / "tree")
            for name in names
        )
        known.write_text(str(total), encoding="ascii")
    return int(known.read_text(encoding="ascii"))


def _close(handles: list[int]) -> None:
    for handle in handles:
        os.close(handle)
