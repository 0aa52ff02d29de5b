"""Which kind of workspace a run gets: asked for, or the quickest that is right here; always with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from harness.errors import EnvironmentProblem
from harness.model.changes import WorkspaceKind
from harness.vcs import overlay

Mode = Literal["auto", "overlay", "checkout", "sparse"]


CHECKOUT = WorkspaceKind("checkout", "the kind that works everywhere")


def choose(mode: Mode, state_dir: Path, against: str) -> WorkspaceKind:
    """`against` is why an overlay would be wrong here, if it would; only an explicit wish overrules it.

    Raises EnvironmentProblem when an overlay was asked for and cannot be mounted.
    """
    if mode in ("checkout", "sparse"):
        return WorkspaceKind(mode, "asked for")
    if mode == "auto" and against:
        return WorkspaceKind("checkout", against)
    problem = overlay.why_not(state_dir)
    if not problem:
        return WorkspaceKind("overlay", "asked for" if mode == "overlay" else "overlays can be mounted here")
    if mode == "overlay":
        raise EnvironmentProblem(
            f"overlay workspaces were asked for, but {problem}", hint="use `--workspace auto` or `--workspace checkout`"
        )
    return WorkspaceKind("checkout", problem)
