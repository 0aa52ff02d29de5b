"""Who does the work: the plain git script, this harness with each kind of workspace, and `ralphy` where it is installed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.places import ROOT, Place, script
from bench.samples import Sample
from fixtures import repos
from harness.vcs.repository import Repository

PLAIN = "plain git script"
OVERLAY = "orchestrix, overlay"
AGAIN = "orchestrix, overlay, again"
CHECKOUT = "orchestrix, checkout"
RALPHY = "ralphy"
BARE = "the commands alone"
EVERYONE = (PLAIN, OVERLAY, AGAIN, CHECKOUT, RALPHY, BARE)
KINDS = {"overlay": (OVERLAY, AGAIN), "checkout": (CHECKOUT,)}
PLAIN_SCRIPT = ROOT / "bench" / "plain.sh"
_ONE_AFTER_THE_OTHER = 'for command; do sh -c "$command"; done'


def _head(place: Place) -> str:
    return repos.git(place.repo, "rev-parse", "HEAD^{tree}").strip()


def _integrated(place: Place, *, run: str) -> str:
    return repos.git(place.repo, "rev-parse", f"refs/heads/orchestrix/{run}/integration^{{tree}}").strip()


def _as_it_lies(place: Place) -> str:
    repos.git(place.repo, "add", "--all", "--force")
    return repos.git(place.repo, "write-tree").strip()


def _no_more(_place: Place) -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Contender:
    """The work of a place as one command in its repository, and the tree that it ended in.

    One with `after` works where that one has just worked, the others in a place of their own.
    """

    name: str
    command: Callable[[Place], Sequence[str | Path]]
    tree: Callable[[Place], str]
    env: Callable[[Place], dict[str, str]] = _no_more
    after: str | None = None


def chosen(names: Sequence[str], why_no_overlays: str | None) -> list[Contender]:
    """Those of this name that can take part here, the yardstick first."""
    absent = {*(KINDS["overlay"] if why_no_overlays else ()), *(() if shutil.which("ralphy") else (RALPHY,))}
    return [contender for contender in _CONTENDERS if contender.name in names and contender.name not in absent]


def why_no_overlays(sample: Sample, folder: Path) -> str | None:
    """None when there are; the folder is for the trial."""
    kind = Repository.discover(sample.repo, folder).choose_workspaces("auto")
    return kind.why if kind.name != "overlay" else None


def _plain(place: Place) -> list[str | Path]:
    return ["bash", PLAIN_SCRIPT, place.repo, place.root / "worktrees", *place.task.commands]


def _orchestrix(place: Place, *, kind: str, run: str) -> list[str | Path]:
    return [*script(), "run", place.plan, "--run-id", run, "--workspace", kind]


def _ralphy(place: Place) -> list[str | Path]:
    """Its agent is a script under the name of the program that it starts by default; it finds its step in the prompt."""
    folder = place.root / "ralphy"
    folder.mkdir()
    for number, work in enumerate(place.task.commands):
        (folder / f"{number}.sh").write_text(work)
    tasks = [{"title": f"bench step {n} end", "parallel_group": 1} for n in range(place.task.steps)]
    (folder / "tasks.json").write_text(json.dumps({"tasks": tasks}))
    return ["ralphy", "--json", folder / "tasks.json", "--parallel", "--fast"]


def _ralphy_env(place: Place) -> dict[str, str]:
    return {"PATH": f"{ROOT / 'bench' / 'agents'}:{place.env['PATH']}", "BENCH_STEPS": str(place.root / "ralphy")}


def _bare(place: Place) -> list[str | Path]:
    return ["sh", "-c", _ONE_AFTER_THE_OTHER, "sh", *place.task.commands]


def _ours(name: str, kind: str, run: str, after: str | None = None) -> Contender:
    return Contender(name, partial(_orchestrix, kind=kind, run=run), partial(_integrated, run=run), after=after)


_CONTENDERS = (
    Contender(PLAIN, _plain, _head),
    _ours(OVERLAY, "overlay", "first"),
    _ours(AGAIN, "overlay", "again", after=OVERLAY),
    _ours(CHECKOUT, "checkout", "first"),
    Contender(RALPHY, _ralphy, _head, _ralphy_env),
    Contender(BARE, _bare, _as_it_lies),
)
