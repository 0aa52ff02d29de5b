"""Shared checkouts: made once for a tree and the user's settings, never written to, shared by runs and processes.

A process holds a shared lock on the card of each that it uses, and counts the workspaces that stand on it; one that
nobody holds, or that no workspace here stands on, may go when all together take too much room.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from harness.errors import EnvironmentProblem, OrchestrixError
from harness.model import limits
from harness.model.ids import TreeId
from harness.model.late import dataclass
from harness.vcs import places, removal
from harness.vcs.early_checkout import EarlyCheckout
from harness.vcs.objects import Objects
from harness.vcs.private import PrivateDir
from harness.vcs.special_paths import SpecialPaths

_PATIENCE_S = 900.0
_INDEX_HEADER = struct.Struct(">4sLL")


@dataclass(frozen=True, slots=True)
class Template:
    """One shared checkout of `count` files; `second` is when the last of them was written."""

    tree: TreeId
    path: Path
    second: int
    count: int

    @property
    def files(self) -> Path:
        return self.path / "tree"


class Templates:
    """The shared checkouts of one repository, as one process uses them."""

    def __init__(
        self, folder: Path, objects: Objects, special_paths: SpecialPaths, later: Callable[[Callable[[], object]], None]
    ) -> None:
        """`later` does something while others work."""
        self._folder = folder
        self._trash = folder / "trash"
        self._later = later
        self._objects = objects
        self._special_paths = special_paths
        self._held: dict[str, Template] = {}
        self._handles: dict[str, int] = {}
        self._users: dict[Path, str] = {}
        self._coming: set[TreeId] = set()
        self._begun: EarlyCheckout | None = None
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._handles)

    def nearest(self, private: PrivateDir, tree: TreeId, user: Path) -> Template:
        """One in use that differs in few paths, and in no attribute, from the tree; else the tree's own.

        Where the difference is large, but small beside the whole, the tree's own is made meanwhile for the next one.
        """
        settings = private.settings
        with self._lock:
            exact = self._held.get(_name(tree, settings))
            for template in [exact] if exact else reversed(self._held.values()):
                distance = self._distance(template, tree) if template.path.name.endswith(settings) else None
                if distance is not None:
                    self._users[user] = template.path.name
                    if distance > limits.TEMPLATE_DELTA and tree not in self._coming:
                        self._coming.add(tree)
                        self._later(partial(self._prepare, private, tree, settings))
                    return template
            return self._opened(private, tree, settings, user)

    def having(self, private: PrivateDir, tree: TreeId, user: Path) -> Template:
        """The tree's own, also after the process that made it is gone."""
        with self._lock:
            return self._opened(private, tree, private.settings, user)

    def begin(self, private: PrivateDir, tree: TreeId) -> None:
        """Starts to make the tree's own and does not wait; harmless where that fails. For a process with one thread."""
        path = self._folder / _name(tree, private.settings)
        with suppress(OrchestrixError, OSError):
            lock = None if (path / "card.json").exists() else places.taken(self._folder / "lock")
            if lock is None:
                return
            try:
                self._make_way(path)
                self._begun = EarlyCheckout.at(path, private, tree, lock)
            finally:
                os.close(lock)

    def warm(self, private: PrivateDir, tree: TreeId) -> None:
        """Has the tree's own ready for whoever asks next; nobody waits, so what goes wrong is told to who needs it."""
        with suppress(OrchestrixError, OSError), self._lock:
            if _name(tree, private.settings) not in self._held:
                self._hold(*self._locked(private, tree, private.settings))
        self._make_room()

    def release(self, user: Path) -> None:
        """The workspace is gone; what it stood on stays for the next one until there is no room."""
        with self._lock:
            self._users.pop(user, None)

    def evict(self) -> None:
        """Removes half-made ones, and the longest unused ones that no workspace stands on until the rest is within its limit."""
        if sum(1 for _ in self._folder.glob("*/tree")) <= 1:
            return
        with self._lock, places.exclusive(self._folder / "lock", _PATIENCE_S):
            halves = [made.parent for made in self._folder.glob("*/tree") if not (made.parent / "card.json").exists()]
            removal.discard(*halves, trash=self._trash)
            found = sorted(self._cards(), key=lambda card: card.stat().st_mtime_ns)
            sizes = {card: _size(card.parent) for card in found}
            excess = sum(sizes.values()) - limits.TEMPLATE_BYTES
            for card in found[:-1]:
                if excess > 0 and card.parent.name not in self._users.values():
                    self._let_go(card.parent.name)
                    if _is_free(card):
                        removal.discard(card.parent, trash=self._trash)
                        excess -= sizes[card]

    def _made_ahead(self, path: Path) -> EarlyCheckout | None:
        """What was begun, if it was this one and git was able to; whatever else was begun is given up."""
        begun, self._begun = self._begun, None
        return begun if begun is not None and begun.ends_well(path, _PATIENCE_S) else None

    def _make_way(self, path: Path) -> None:
        places.make_roomy(self._folder)
        removal.discard(path, trash=self._trash)

    def _cards(self) -> Iterator[Path]:
        return self._folder.glob("*/card.json")

    def _distance(self, template: Template, tree: TreeId) -> int | None:
        """In how many paths they differ; None when a checkout of its own is better or the only right way."""
        if template.tree == tree:
            return 0
        if self._special_paths.of(template.tree).attributes != self._special_paths.of(tree).attributes:
            return None
        changed = len(self._objects.changes(template.tree, tree))
        most = max(limits.TEMPLATE_DELTA, template.count // limits.TEMPLATE_SHARE)
        return changed if changed <= most else None

    def _prepare(self, private: PrivateDir, tree: TreeId, settings: str) -> None:
        """Nobody waits: where it fails, whoever needs it makes it, or says why that does not work."""
        with suppress(OrchestrixError, OSError):
            made = self._locked(private, tree, settings)
            with self._lock:
                self._hold(*made)
        self._make_room()

    def _make_room(self) -> None:
        """What could not go now goes when a run is forgotten, and is told then."""
        with suppress(OrchestrixError, OSError):
            self.evict()

    def _opened(self, private: PrivateDir, tree: TreeId, settings: str, user: Path) -> Template:
        template = self._held.get(_name(tree, settings))
        if template is None:
            template, handle = self._locked(private, tree, settings)
            self._hold(template, handle)
            self._later(self._make_room)
        self._users[user] = template.path.name
        return template

    def _hold(self, template: Template, handle: int) -> None:
        self._let_go(template.path.name)
        self._held[template.path.name] = template
        self._handles[template.path.name] = handle

    def _let_go(self, name: str) -> None:
        if self._held.pop(name, None) is not None:
            os.close(self._handles.pop(name))

    def _locked(self, private: PrivateDir, tree: TreeId, settings: str) -> tuple[Template, int]:
        """The tree's own, made unless it is there and untouched, and a descriptor that holds the lock on its card."""
        path = self._folder / _name(tree, settings)
        card = path / "card.json"
        begun = self._made_ahead(path)
        with places.exclusive(self._folder / "lock", _PATIENCE_S):
            if begun is not None and begun.stands() and not card.exists():
                _sign(path)
            elif card.exists() and not _is_intact(private, path):
                if not _is_free(card):
                    raise EnvironmentProblem(
                        f"the shared checkout {path} was written to, and another run uses it",
                        hint="end that run, or use `--workspace checkout`",
                    )
                card.unlink()
            if not card.exists():
                self._make_way(path)
                _make(private, tree, path)
            os.utime(card)
            handle = os.open(card, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(handle, fcntl.LOCK_SH)
        second = json.loads(card.read_text(encoding="utf-8"))["second"]
        return Template(tree, path, second, _count(path / "index")), handle


def _name(tree: TreeId, settings: str) -> str:
    return f"{tree}-{settings}"


def _make(private: PrivateDir, tree: TreeId, path: Path) -> None:
    places.make_private(path / "tree")
    with places.explained(path):
        private.git(path / "tree", path / "index").run("read-tree", "--reset", "-u", tree)
    _sign(path)


def _sign(path: Path) -> None:
    """The card comes last: without one the directory is what a crash left."""
    second = int((path / "index").stat().st_mtime)
    aside = path / "card.new"
    aside.write_text(json.dumps({"second": second}), encoding="utf-8")
    aside.rename(path / "card.json")


def _count(index: Path) -> int:
    with index.open("rb") as file:
        return int(_INDEX_HEADER.unpack(file.read(_INDEX_HEADER.size))[2])


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


def _close(handles: dict[str, int]) -> None:
    for handle in handles.values():
        os.close(handle)
