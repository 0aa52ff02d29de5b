"""Where measurements happen: a home of their own, a repository, and the programs that are compared."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fixtures import repos

ROOT = Path(__file__).resolve().parents[1]
MODULE = (sys.executable, "-m", "harness")
_PLAIN_NAME = re.compile(r"[\w./-]+", re.ASCII)


def script() -> tuple[str, ...]:
    """The installed entry point beside this interpreter; the module where there is none."""
    found = Path(sys.executable).with_name("orchestrix")
    return (str(found),) if found.exists() else MODULE


@dataclass(frozen=True)
class Place:
    """A folder for one measurement: a repository of so many files, or of the files of a real `tree`."""

    root: Path
    files: int
    steps: int
    tree: Path | None = None

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

    @cached_property
    def template(self) -> Path:
        """The repository that every contender gets a copy of."""
        made = self.root / "template"
        if not made.exists():
            if self.tree is None:
                repos.wide(made, files=self.files)
            else:
                _unpacked(made, self.tree)
            repos.git(made, "gc", "--quiet")
        return made

    @cached_property
    def written(self) -> list[tuple[str, ...]]:
        """The three files of each step, which no other step touches: a new one and two edits, or new ones in a small tree."""
        names = repos.git(self.template, "ls-files", "-z").split("\0")
        known = [name for name in names if name and _PLAIN_NAME.fullmatch(name)][: 2 * self.steps]
        known = known[: len(known) // 2 * 2]
        edited = known + [f"more/file{n:05}.py" for n in range(2 * self.steps - len(known))]
        return [(f"new{n}.txt", edited[2 * n], edited[2 * n + 1]) for n in range(self.steps)]

    @property
    def commands(self) -> list[str]:
        """The work of each step as a line of shell."""
        return [
            f"mkdir -p {Path(two).parent}; echo new > {new}; echo '# edit' >> {one}; echo '# edit' >> {two}"
            for new, one, two in self.written
        ]

    @property
    def plan(self) -> Path:
        """The same work as a plan; every step owns the three files that it writes."""
        steps = [
            {"title": f"Step {number}", "owns": list(owned), "command": ["sh", "-c", command]}
            for number, (owned, command) in enumerate(zip(self.written, self.commands, strict=True))
        ]
        path = self.root / "plan.json"
        path.write_text(json.dumps({"version": 1, "goal": "Measure", "steps": steps}))
        return path

    def fresh(self, name: str) -> Path:
        """A new copy of the repository, with an index that vouches for the copied files, and no state of an older one."""
        copy = self.root / name
        for left in (copy, self.root / ".local"):
            shutil.rmtree(left, ignore_errors=True)
        shutil.copytree(self.template, copy, symlinks=True)
        repos.git(copy, "update-index", "-q", "--refresh")
        return copy


def _unpacked(directory: Path, source: Path) -> None:
    """The files of a folder or of an archive, such as a source distribution, in one commit."""
    repo = repos.empty(directory)
    if source.is_dir():
        shutil.copytree(source, repo, symlinks=True, ignore=shutil.ignore_patterns(".git"), dirs_exist_ok=True)
    elif source.suffix == ".zip":
        shutil.unpack_archive(source, repo)
    else:
        shutil.unpack_archive(source, repo, filter="data")
    repos.git(repo, "add", "--all", "--force")
    repos.git(repo, "commit", "--quiet", "--message", "Start")
