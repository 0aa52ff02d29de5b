"""What must hold before agents run beside a CI system's credentials: they cannot be reached through configuration.

Children get an allowlisted environment. A setting of the repository could add to it, and `actions/checkout` leaves the
job's token in git's configuration unless it is told not to; both are readable by every child.
"""

from __future__ import annotations

from pathlib import Path

from harness.errors import EnvironmentProblem
from harness.vcs import git

_RUNNER_FILES = frozenset({"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "GITHUB_STATE"})
_TOKEN_PREFIX = "ACTIONS_"  # noqa: S105 - a prefix of names, not a token
_HEADER = r"^http\..*extraheader$"


def require(root: Path, env_pass: tuple[str, ...]) -> None:
    """Raises EnvironmentProblem, naming the setting, where a child could reach the job's token or the runner's files."""
    named = [
        name for name in env_pass if name in _RUNNER_FILES or name == "GITHUB_TOKEN" or name.startswith(_TOKEN_PREFIX)
    ]
    if named:
        raise EnvironmentProblem(
            f"env_pass names {', '.join(named)}: agents of a CI job never see its token or the runner's files",
            hint="take it out of env_pass; an agent that needs a token gets its own, under another name",
        )
    found = git.ask("config", "--includes", "--name-only", "-z", "--get-regexp", _HEADER, cwd=root)
    if found.items():
        raise EnvironmentProblem(
            f"git's configuration holds the credentials of this job ({git.text(found.items()[0])}), where agents can read them",
            hint="check out with `persist-credentials: false`",
        )
