"""Workspaces: a git worktree for each sub-agent, made so that any interrupted prefix of the work can be undone.

Order: branch, files and pristine index, `.git` file, admin directory (renamed into place), card.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from harness.errors import EnvironmentProblem
from harness.model.changes import Workspace
from harness.model.ids import CommitId, RefName, TreeId
from harness.model.late import dataclass
from harness.vcs import overlay, places, removal
from harness.vcs.places import Place
from harness.vcs.private import PrivateDir


@dataclass(frozen=True, slots=True)
class Card:
    """What the harness remembers of a workspace, out of the agent's reach."""

    start: CommitId
    branch: RefName | None
    prepared: Mapping[str, str] = field(default_factory=dict)
    template: TreeId | None = None
    """The tree of the shared checkout below an overlay; None: the workspace is a checkout of its own."""


def create(place: Place, card: Card, fill: Callable[[Place], None]) -> Workspace:
    """Makes the worktree; nothing of the name may be left (see `remove`), and the branch is at its start already.

    `fill` brings the files of the start point into the tree and writes the pristine index.
    """
    for directory in (place.tree.parent, place.index.parent, place.private.parent):
        places.make_private(directory)
    for directory in (place.tree, place.private):
        directory.mkdir(mode=0o700)
    fill(place)
    (place.tree / ".git").write_bytes(b"gitdir: " + os.fsencode(place.admin) + b"\n")
    with places.repository_lock(place.run_dir.parent):
        _register(place, card.start, card.branch)
    write_card(place, card)
    return _workspace(place, card)


def check_out(place: Place, private: PrivateDir, tree: TreeId) -> None:
    """Fills a workspace with a checkout of its own."""
    private.git(place.tree, place.index).run("read-tree", "--reset", "-u", tree)


def find(place: Place) -> Workspace | None:
    """The workspace, if it is whole."""
    card = read_card(place)
    whole = place.tree.is_dir() and place.index.is_file() and place.admin.is_dir()
    return _workspace(place, card) if card and whole else None


def remove(place: Place) -> None:
    """Removes worktree and bookkeeping, also half-made ones; raises EnvironmentProblem when something resists."""
    retire(place)
    removal.remove_if_empty(place.tree)
    _discard(place, place.tree)


def retire(place: Place) -> None:
    """Removes everything but the empty directory that an overlay was mounted on.

    A sandbox that is just being set up has a copy of that mount, and stumbles when the directory below it goes.
    """
    if not any(map(os.path.lexists, (place.card, place.index, place.layers, place.private, place.admin))):
        return
    place.card.unlink(missing_ok=True)
    with places.repository_lock(place.run_dir.parent):
        _unregister(place)
    overlaid = overlay.unmount(place)
    _discard(place, place.layers, place.private, *(() if overlaid else (place.tree,)))
    place.index.unlink(missing_ok=True)
    removal.sweep(place.trash)
    removal.remove_if_empty(place.trash)


def _discard(place: Place, *paths: Path) -> None:
    if any(map(os.path.lexists, paths)):
        removal.discard(*paths, trash=place.trash)
        removal.remove_if_empty(place.trash)


def write_card(place: Place, card: Card) -> None:
    """Atomically, so that a card is either absent or true."""
    content = {
        "start": card.start,
        "branch": card.branch,
        "prepared": dict(card.prepared),
        "template": card.template,
    }
    handle, aside = tempfile.mkstemp(dir=place.run_dir)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(content, file)
    Path(aside).replace(place.card)


def read_card(place: Place) -> Card | None:
    try:
        content = json.loads(place.card.read_text(encoding="utf-8"))
        branch, template = content["branch"], content.get("template")
        return Card(
            CommitId(content["start"]),
            RefName(branch) if branch else None,
            dict(content["prepared"]),
            TreeId(template) if template else None,
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EnvironmentProblem(
            f"{place.card} is unreadable: {error}", hint="remove the workspace with `orchestrix clean`"
        ) from error


def _workspace(place: Place, card: Card) -> Workspace:
    return Workspace(place.name, place.tree, card.start, card.branch, place.admin, place.index, place.private)


def _register(place: Place, start: CommitId, branch: RefName | None) -> None:
    """Builds the admin directory aside: git never sees a half-made entry."""
    if os.path.lexists(place.admin):
        raise EnvironmentProblem(
            f"{place.admin} belongs to another worktree", hint="see `git worktree list`; remove the stale entry"
        )
    place.admin.parent.mkdir(exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=place.aside, dir=place.common_dir))
    files = {
        "HEAD": f"ref: {branch}\n" if branch else f"{start}\n",
        "commondir": "../..\n",
        "gitdir": f"{place.tree / '.git'}\n",
        "locked": f"orchestrix run {place.run}\n",
    }
    for name, content in files.items():
        (aside / name).write_bytes(os.fsencode(content))
    shutil.copy2(place.index, aside / "index")
    aside.chmod(0o755)
    aside.rename(place.admin)


def _unregister(place: Place) -> None:
    removal.discard(*place.common_dir.glob(f"{place.aside}*"), place.admin, trash=place.admin_trash)
    removal.sweep(place.admin_trash)
    for directory in (place.admin_trash, place.admin.parent):
        removal.remove_if_empty(directory)
