"""Where measurements happen: a home of their own, a repository built by code, and the programs that are compared."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from fixtures import repos

ROOT = Path(__file__).resolve().parents[1]
MODULE = (sys.executable, "-m", "harness")


def script() -> tuple[str, ...]:
    """The installed entry point beside this interpreter; the module where there is none."""
    found = Path(sys.executable).with_name("orchestrix")
    return (str(found),) if found.exists() else MODULE


@dataclass(frozen=True)
class Place:
    """A folder for one measurement."""

    root: Path
    files: int
    steps: int

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

    @property
    def commands(self) -> list[str]:
        """The work of each step: one new file, two edits, in folders that no other step touches."""
        paths = [f"pkg{n // 100:03}/mod{n:05}.py" for n in range(2 * self.steps)]
        return [
            f"echo new > new{n}.txt; echo '# edit' >> {paths[2 * n]}; echo '# edit' >> {paths[2 * n + 1]}"
            for n in range(self.steps)
        ]

    @property
    def plan(self) -> Path:
        """The same work as a plan; every step owns the three files that it writes."""
        steps = []
        for number, command in enumerate(self.commands):
            owned = [word for word in command.replace(";", " ").split() if word.endswith((".txt", ".py"))]
            steps.append({"title": f"Step {number}", "owns": owned, "command": ["sh", "-c", command]})
        path = self.root / "plan.json"
        path.write_text(json.dumps({"version": 1, "goal": "Measure", "steps": steps}))
        return path

    def fresh(self, name: str) -> Path:
        """A new copy of the repository, with an index that vouches for the copied files, and no state of an older one."""
        template, copy = self.root / "template", self.root / name
        if not template.exists():
            repos.wide(template, files=self.files)
            repos.git(template, "gc", "--quiet")
        for left in (copy, self.root / ".local"):
            shutil.rmtree(left, ignore_errors=True)
        shutil.copytree(template, copy)
        repos.git(copy, "update-index", "-q", "--refresh")
        return copy
