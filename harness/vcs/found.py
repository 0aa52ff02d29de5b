"""Founds a new repository; only the demo makes repositories, everything else works on the user's."""

from __future__ import annotations

from pathlib import Path

from harness.errors import GitFailed
from harness.vcs import git


def repository(root: Path, message: str) -> None:
    """Makes `root` a repository on branch main with everything in it as the first commit."""
    who = ("-c", "user.name=Orchestrix", "-c", "user.email=orchestrix@localhost")
    for args in (
        ("init", "--quiet", "--initial-branch=main", "--template="),
        ("add", "--all"),
        (*who, "commit", "--quiet", f"--message={message}"),
    ):
        answer = git.ask(*args, cwd=root)
        if answer.code:
            raise GitFailed(f"git {args[0]} failed: {answer.last_error}", hint="see `orchestrix doctor`")
