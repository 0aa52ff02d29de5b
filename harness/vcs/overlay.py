"""Overlay workspaces: one shared checkout below, what a step changes in a directory of its own above it."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from harness import namespace
from harness.errors import EnvironmentProblem
from harness.vcs import removal
from harness.vcs.places import Place, make_private, make_roomy

# Characters that separate options and layers in the one string that the kernel takes.
_SEPARATORS = set(',:\\"\n')
# volatile: closing a workspace does not write a busy disk's whole cache out; a snapshot, not the mount, makes work last.
# Renaming a directory works as anywhere else only with redirect_dir, which an unprivileged mount may not have.
_PRIVILEGED = "redirect_dir=on,metacopy=off,index=off,volatile"
_UNPRIVILEGED = "userxattr,volatile"


def why_not(state_dir: Path) -> str:
    """Why overlays cannot be used for workspaces there; empty when they can."""
    if _SEPARATORS & set(str(state_dir)):
        return f"the path {state_dir} holds a character that mount options cannot"
    problem = _problem(state_dir)
    # A namespace from before the disk was mounted does not know it.
    return _problem(state_dir) if problem and namespace.restart() else problem


def _problem(state_dir: Path) -> str:
    """Really uses one: a file system may take the mount and then not know deletions or renames."""
    try:
        make_roomy(state_dir)
        with tempfile.TemporaryDirectory(prefix=".probe-", dir=state_dir) as scratch:
            return _try_out(Path(scratch))
    except OSError as error:
        return f"an overlay cannot be mounted: {error.strerror or error}"


def _try_out(scratch: Path) -> str:
    for name in ("lower/gone", "upper", "work", "tree"):
        (scratch / name).mkdir(parents=True)
    _mount(scratch / "lower", scratch / "upper", scratch / "work", scratch / "tree")
    try:
        tree = Path(namespace.seen(scratch / "tree"))
        (tree / "gone").rmdir()
        (tree / "new").write_bytes(b"new")
        left = sorted(path.name for path in tree.iterdir())
    finally:
        namespace.unmount(str(scratch / "tree"))
        for directory in (scratch / "work").rglob("*"):
            with suppress(OSError):
                directory.chmod(0o700)
    return "" if left == ["new"] else "an overlay here does not remember deletions"


def mount(place: Place, lower: Path) -> None:
    """Shows `lower` with the place's own changes at its tree; a mount that a crash interrupted is made anew."""
    try:
        os.mkdir(place.layers, 0o700)  # noqa: PTH102 - every workspace comes by here, and pathlib looks first
        os.mkdir(place.upper, 0o700)  # noqa: PTH102 - as above
    except (FileNotFoundError, FileExistsError):
        make_private(place.tree)
        make_private(place.upper)
        removal.discard(place.work, trash=place.trash)
    os.mkdir(place.work, 0o700)  # noqa: PTH102 - as above
    try:
        _mount(lower, place.upper, place.work, place.tree)
    except OSError as error:
        raise EnvironmentProblem(
            f"workspace {place.name} cannot be mounted at {place.tree}: {error.strerror or error}",
            hint="overlays need root or an unprivileged user namespace; new runs can use `--workspace checkout`",
        ) from error


def is_mounted(place: Place) -> bool:
    return namespace.is_mounted(str(place.tree))


def unmount(place: Place) -> bool:
    """Whether there was anything to unmount; the changes stay in the upper directory."""
    if not namespace.unmount(str(place.tree)):
        return False
    with suppress(OSError):  # the kernel closes them even to their owner, whose own tools would stumble over them
        for folder in ("work", "work/incompat", "work/incompat/volatile"):
            os.chmod(f"{place.work}/{folder}", 0o700)  # noqa: PTH101 - as in `mount`
    return True


def _mount(lower: Path, upper: Path, work: Path, tree: Path) -> None:
    options = _PRIVILEGED if os.geteuid() == 0 else _UNPRIVILEGED
    namespace.mount("overlay", str(tree), f"lowerdir={lower},upperdir={upper},workdir={work},{options}")
