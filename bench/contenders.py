"""Who does the work: the plain git script, this harness with each kind of workspace, and `ralphy` where it is installed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.places import ROOT, Place, script
from fixtures import repos
from harness.vcs.repository import Repository

PLAIN = "plain git script"
RALPHY = "ralphy"
KINDS = ("overlay", "checkout")
PLAIN_SCRIPT = ROOT / "bench" / "plain.sh"
_RUN = "bench"
_INTEGRATED = f"refs/heads/orchestrix/{_RUN}/integration"


def ours(kind: str) -> str:
    return f"orchestrix, {kind}"


@dataclass(frozen=True)
class Job:
    """The work of a place as one command in a repository made for it; `result` is where its outcome is."""

    name: str
    place: Place
    command: Callable[[Path], Sequence[str | Path]]
    result: str
    env: dict[str, str]

    def prepared(self) -> tuple[Path, Sequence[str | Path]]:
        repo = self.place.fresh("work")
        for left in (self.place.root / "worktrees", self.place.root / "ralphy"):
            shutil.rmtree(left, ignore_errors=True)
        return repo, self.command(repo)

    def outcome(self) -> str:
        """The tree that it ended in."""
        return repos.git(self.place.root / "work", "rev-parse", f"{self.result}^{{tree}}")


def jobs(place: Place, kinds: Sequence[str]) -> list[Job]:
    """The yardstick first; kinds of workspace that cannot be had here are left out."""
    found = [_plain(place), *(_orchestrix(place, kind) for kind in kinds if missing(place, kind) is None)]
    return found + ([_ralphy(place)] if shutil.which("ralphy") else [])


def missing(place: Place, kind: str) -> str | None:
    """Why this kind of workspace cannot be had in this place; None when it can."""
    chosen = Repository.discover(place.template, place.root / ".kinds").choose_workspaces("auto")
    return chosen.why if kind == "overlay" != chosen.name else None


def _plain(place: Place) -> Job:
    def command(repo: Path) -> list[str | Path]:
        return ["bash", PLAIN_SCRIPT, repo, place.root / "worktrees", *place.commands]

    return Job(PLAIN, place, command, "HEAD", place.env)


def _orchestrix(place: Place, kind: str) -> Job:
    def command(_repo: Path) -> list[str | Path]:
        return [*script(), "run", place.plan, "--run-id", _RUN, "--workspace", kind]

    return Job(ours(kind), place, command, _INTEGRATED, place.env)


def _ralphy(place: Place) -> Job:
    """Its agent is a script under the name of the program that it starts by default; it finds its step in the prompt."""
    folder = place.root / "ralphy"

    def command(_repo: Path) -> list[str | Path]:
        folder.mkdir()
        for number, work in enumerate(place.commands):
            (folder / f"{number}.sh").write_text(work)
        tasks = [{"title": f"bench step {n} end", "parallel_group": 1} for n in range(place.steps)]
        (folder / "tasks.json").write_text(json.dumps({"tasks": tasks}))
        return ["ralphy", "--json", folder / "tasks.json", "--parallel", "--fast"]

    env = place.env | {"PATH": f"{ROOT / 'bench' / 'agents'}:{place.env['PATH']}", "BENCH_STEPS": str(folder)}
    return Job(RALPHY, place, command, "HEAD", env)
