"""Where one contender works once: a home of its own with a copy of the repository, and the plan of what to do there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bench.samples import Sample
from fixtures import repos

ROOT = Path(__file__).resolve().parents[1]
MODULE = (sys.executable, "-m", "harness")
_PLAIN_NAME = re.compile(r"[\w./-]+", re.ASCII)


def script() -> tuple[str, ...]:
    """The installed entry point beside this interpreter; the module where there is none."""
    found = Path(sys.executable).with_name("orchestrix")
    return (str(found),) if found.exists() else MODULE


def title(steps: int, files: int) -> str:
    return f"{steps:,} step{'s' if steps > 1 else ''} on {files:,} files"


@dataclass(frozen=True)
class Task:
    """The same work for everyone: so many steps on a repository."""

    sample: Sample
    steps: int

    @property
    def title(self) -> str:
        return title(self.steps, self.sample.files) + (f" of {self.sample.name}" if self.sample.name else "")

    @cached_property
    def written(self) -> list[tuple[str, ...]]:
        """The three files of each step, which no other step touches: a new one and two edits, or new ones in a small tree."""
        names = repos.git(self.sample.repo, "ls-files", "-z").split("\0")
        known = [name for name in names if name and _PLAIN_NAME.fullmatch(name)][: 2 * self.steps]
        known = known[: len(known) // 2 * 2]
        edited = known + [f"more/file{n:05}.py" for n in range(2 * self.steps - len(known))]
        return [(f"new{n}.txt", edited[2 * n], edited[2 * n + 1]) for n in range(self.steps)]

    @cached_property
    def commands(self) -> list[str]:
        """The work of each step as a line of shell."""
        return [
            f"mkdir -p {Path(two).parent}; echo new > {new}; echo '# edit' >> {one}; echo '# edit' >> {two}"
            for new, one, two in self.written
        ]

    @property
    def plan(self) -> str:
        """The same work as a plan; every step owns the three files that it writes."""
        steps = [
            {"title": f"Step {number}", "owns": list(owned), "command": ["sh", "-c", command]}
            for number, (owned, command) in enumerate(zip(self.written, self.commands, strict=True))
        ]
        return json.dumps({"version": 1, "goal": "Measure", "steps": steps})


@dataclass(frozen=True)
class Place:
    """A folder of one's own, state and worktrees included; `made` fills it."""

    root: Path
    task: Task

    @classmethod
    def made(cls, task: Task, root: Path) -> Place:
        """With an index that vouches for the copied files."""
        place = cls(root, task)
        place.plan.write_text(task.plan)
        subprocess.run(["cp", "-a", task.sample.repo, place.repo], check=True)
        repos.git(place.repo, "update-index", "-q", "--refresh")
        return place

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    @property
    def plan(self) -> Path:
        return self.root / "plan.json"

    @property
    def env(self) -> dict[str, str]:
        """Nothing of the user's configuration, and who commits."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "PYTHONPATH": str(ROOT),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{
                f"GIT_{role}_{part}": "bench@example.invalid"
                for role in ("AUTHOR", "COMMITTER")
                for part in ("NAME", "EMAIL")
            },
        }
