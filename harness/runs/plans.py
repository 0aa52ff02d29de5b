"""Finds and loads the plan that a user names."""

from __future__ import annotations

import os
from pathlib import Path

from harness.config import plan_file
from harness.config import settings as settings_file
from harness.config.plan_file import LoadedPlan
from harness.errors import EnvironmentProblem


def load(path: str, directory: Path) -> LoadedPlan:
    """The plan, named relative to where the user is or, if it is not there, to the repository given with -C."""
    inside = directory / path
    if path != "-" and not Path(path).exists() and inside.exists():
        return plan_file.load(inside)
    return plan_file.load(Path(path))


def require_separate_installs(directory: Path) -> None:
    """Raises SharedInstall; a plan can also be validated where there is no repository or its settings are wrong.

    Where nothing can be linked or copied, no settings are read: validating a plan stays quick.
    """
    root = next((folder for folder in (directory, *directory.parents) if (folder / ".git").exists()), None)
    if root is None or not (settings_file.is_configured(root, os.environ) or (root / ".worktreeinclude").exists()):
        return
    from harness.wiring import Project  # noqa: PLC0415 - most plans are validated without it

    try:
        project = Project.at(directory)
    except EnvironmentProblem:
        return
    project.require_separate_installs()
