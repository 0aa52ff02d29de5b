"""Workspaces: a checkout with a git dir of its own for each sub-agent; any interrupted prefix of it can be undone.

Order: branch, files and pristine index, git dir, `.git` file, card.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from harness import namespace
from harness.errors import EnvironmentProblem
from harness.model.changes import Workspace
from harness.model.ids import CommitId, RefName, TreeId
from harness.model.late import dataclass
from harness.vcs import overlay, places, removal
from harness.vcs.places import Place
from harness.vcs.step_git import StepGit

_CHUNK = 1 << 30


@dataclass(frozen=True, slots=True)
class Card:
    """What the harness remembers of a workspace, out of the agent's reach."""

    start: CommitId
    branch: RefName | None
    prepared: Mapping[str, str] = field(default_factory=dict)
    template: TreeId | None = None
    """The tree of the shared checkout below an overlay; None: the workspace is a checkout of its own."""
    only: tuple[str, ...] | None = None
    """What a sparse workspace holds besides the files at the top level; None: it holds everything."""
    brought: tuple[str, ...] = ()
    """What was copied and linked from the user's checkout."""


def create(place: Place, card: Card, fill: Callable[[Place], None], git: StepGit) -> Workspace:
    """Makes the workspace; nothing of the name may be left (see `remove`), and the branch is at its start already.

    `fill` brings the files of the start point into the tree and writes the pristine index.
    """
    _make_homes(place, roomy=card.template is None)
    with places.explained(place.run_dir):
        fill(place)
    git.make(place.admin, place.refs, card.start, card.branch)
    copy_index(str(place.index), f"{place.admin}/index")
    _write(f"{namespace.seen(place.tree)}/.git", b"gitdir: " + os.fsencode(place.admin) + b"\n")
    write_card(place, card)
    return _workspace(place, card)


def find(place: Place) -> tuple[Workspace, Card] | None:
    """The workspace, if it is whole, and what is remembered of it."""
    card = read_card(place)
    whole = place.tree.is_dir() and place.index.is_file() and (place.admin.is_dir() or place.entry.is_dir())
    return (_workspace(place, card), card) if card and whole else None


def is_left(place: Place) -> bool:
    """Whether there is anything of this name, whole or not."""
    return os.path.lexists(place.tree) or _has_parts(place)


def remove(place: Place) -> None:
    """Removes worktree and bookkeeping, also half-made ones; what resists stays (see `removal`)."""
    retire(place)
    if not removal.remove_if_empty(place.tree):
        removal.put(place.tree, trash=place.trash)
    removal.empty(place.trash)


def retire(place: Place) -> bool:
    """Moves everything into the run's trash, but the empty directory that an overlay was mounted on.

    A sandbox that is just being set up has a copy of that mount, and stumbles when the directory below it goes.
    Returns whether it was a mounted overlay: then what is in the trash is only what the step wrote.
    """
    if not _has_parts(place):
        return False
    place.card.unlink(missing_ok=True)
    if os.path.lexists(place.entry):
        removal.put(place.entry, trash=place.trash, elsewhere=place.admin_trash)
        removal.remove_if_empty(place.entry.parent)
    overlaid = os.path.lexists(place.layers) and overlay.unmount(place)
    removal.put(place.layers, place.private, *(() if overlaid else (place.tree,)), trash=place.trash)
    place.refs.unlink(missing_ok=True)
    place.index.unlink(missing_ok=True)
    return overlaid


def set_aside(place: Place, folder: Path) -> Path:
    """Moves the agent's files, or what an overlay holds of them, out of the workspace; nothing of ours removes them there."""
    made = folder / f"{place.run}-{place.name}"
    if os.path.lexists(place.layers):
        overlay.unmount(place)
    files = place.upper if os.path.lexists(place.upper) else place.tree
    places.make_private(folder)
    number = 1
    while os.path.lexists(made):
        number += 1
        made = folder / f"{place.run}-{place.name}.{number}"
    files.rename(made)
    return made


def _has_parts(place: Place) -> bool:
    return any(map(os.path.lexists, (place.index, place.private, place.card, place.layers, place.refs, place.entry)))


def write_card(place: Place, card: Card) -> None:
    """Atomically, so that a card is either absent or true."""
    content = {
        "start": card.start,
        "branch": card.branch,
        "prepared": dict(card.prepared),
        "template": card.template,
        "only": card.only,
        "brought": card.brought,
    }
    aside = f"{place.run_dir}/{place.name}.card.new"
    _write(aside, json.dumps(content).encode())
    os.replace(aside, place.card)  # noqa: PTH105 - strings where every workspace comes by


def read_card(place: Place) -> Card | None:
    try:
        content = json.loads(place.card.read_text(encoding="utf-8"))
        branch, template, only = content["branch"], content.get("template"), content.get("only")
        return Card(
            CommitId(content["start"]),
            RefName(branch) if branch else None,
            dict(content["prepared"]),
            TreeId(template) if template else None,
            None if only is None else tuple(only),
            tuple(content.get("brought", ())),
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EnvironmentProblem(
            f"{place.card} is unreadable: {error}", hint="remove the workspace with `orchestrix clean`"
        ) from error


def _workspace(place: Place, card: Card) -> Workspace:
    return Workspace(
        place.name,
        place.tree,
        card.start,
        card.branch,
        place.admin,
        place.index,
        place.private,
        sparse=card.only is not None,
    )


def _make_homes(place: Place, *, roomy: bool) -> None:
    """The first workspace of a run makes what is above them; checkouts, which are large, are kept far apart."""
    for directory in (place.tree, place.private):
        try:
            os.mkdir(directory, 0o700)  # noqa: PTH102 - every workspace comes by here, and pathlib looks first
        except FileNotFoundError:
            for folder in (place.tree.parent, place.card.parent, place.private.parent):
                places.make_private(folder)
            if roomy:
                places.make_roomy(place.tree.parent)
            os.mkdir(directory, 0o700)  # noqa: PTH102 - as above


def copy_index(source: str, target: str) -> None:
    """With the time that it has: an index vouches only for files that are older than itself."""
    reader = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            while os.sendfile(writer, reader, None, _CHUNK):
                pass
            found = os.fstat(reader)
            os.utime(writer, ns=(found.st_atime_ns, found.st_mtime_ns))
        finally:
            os.close(writer)
    finally:
        os.close(reader)


def _write(path: str, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        while content:
            content = content[os.write(handle, content) :]
    finally:
        os.close(handle)
