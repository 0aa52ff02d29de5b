"""Finds and loads the plan that a user names."""

from __future__ import annotations

from pathlib import Path

from harness.config import plan_file
from harness.config.plan_file import LoadedPlan


def load(path: str, directory: Path) -> LoadedPlan:
    """The plan, named relative to where the user is or, if it is not there, to the repository given with -C."""
    inside = directory / path
    if path != "-" and not Path(path).exists() and inside.exists():
        return plan_file.load(inside)
    return plan_file.load(Path(path))
