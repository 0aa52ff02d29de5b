"""All contenders do the same work, each in a place of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bench import contenders, samples
from bench.contenders import AGAIN, BARE, CHECKOUT, EVERYONE, OVERLAY, PLAIN, RALPHY
from bench.ground import Ground
from bench.places import ROOT, Place, Task
from bench.work import Runs
from fixtures import repos


def test_every_contender_is_timed(ground: Ground) -> None:
    """Two steps on a few files: whoever can take part here ends in the same tree, and leaves its numbers."""
    sample = samples.generated(ground.folder(), 20)
    why_not = contenders.why_no_overlays(sample, ground.folder())
    told: list[str] = []
    found = Runs(Task(sample, 2), ground, told.append).measure(contenders.chosen(EVERYONE, why_not), 1, weighed=False)
    overlays = () if why_not else (OVERLAY, AGAIN)
    installed = (RALPHY,) if shutil.which("ralphy") else ()
    names = [PLAIN, *overlays, CHECKOUT, *installed, BARE]
    assert list(found.times.spent) == list(found.footprints) == names
    assert [line.partition(": ")[0] for line in told] == [f"2 steps on 20 files, {name}" for name in names]
    assert all(spent.clock > 0 for spent in found.times.spent.values())
    assert all(0 < found.footprints[name].first <= found.footprints[name].tree for name in names if name != BARE)
    assert found.overhead(BARE) == 0.0 < (found.overhead(CHECKOUT) or 0.0)
    # Who runs again has the repository and the shared checkout of the first run; all others begin anew.
    integrated = [
        repos.git(repo, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/orchestrix/*/integration").split()
        for repo in sorted(ground.root.glob("*/repo"))
    ]
    both = [["again/integration", "first/integration"]] if overlays else []
    assert integrated == [[], *both, ["first/integration"], *([] for _ in installed), []]
    shared = list(ground.root.glob("*/.local/state/orchestrix/*/_templates/*/card.json"))
    assert len(shared) == len(both)


def test_each_round_has_a_place_of_its_own(ground: Ground) -> None:
    """Also the one in which disk and memory are looked at closely; nothing of the others is removed."""
    task = Task(samples.generated(ground.folder(), 20), 1)
    runs = Runs(task, ground, lambda _: None)
    found = runs.measure(contenders.chosen((PLAIN, BARE), None), 2, weighed=True)
    assert {name: len(rounds) for name, rounds in found.times.rounds.items()} == {PLAIN: 2, BARE: 2}
    assert len(list(ground.root.glob("*/repo/new0.txt"))) == 2 * (2 + 1)
    assert all(found.footprints[name].disk for name in (PLAIN, BARE))


def test_contenders_that_end_differently_are_not_compared(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that does other work than the plan is no yardstick."""
    lazy = ground.root / "lazy.sh"
    lazy.write_text("true\n")
    monkeypatch.setattr(contenders, "PLAIN_SCRIPT", lazy)
    task = Task(samples.generated(ground.folder(), 20), 1)
    with pytest.raises(RuntimeError, match="did not do the same work"):
        Runs(task, ground, lambda _: None).measure(contenders.chosen((PLAIN, BARE), None), 1, weighed=False)


def test_the_stand_in_for_an_agent_does_the_step_that_its_prompt_names(tmp_path: Path) -> None:
    """It is how a program that starts an agent by name joins the comparison."""
    repo = repos.small(tmp_path / "repo")
    (tmp_path / "7.sh").write_text("echo new > new7.txt")
    done = subprocess.run(
        [
            ROOT / "bench" / "agents" / "claude",
            "--verbose",
            "-p",
            "Do this:\n\nTASK: bench step 7 end\n\nbench step 7 end",
        ],
        cwd=repo,
        env=Place(tmp_path, Task(samples.Sample(repo, 7), 1)).env
        | {"BENCH_STEPS": str(tmp_path), "HOME": os.environ["HOME"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"type":"result"' in done.stdout
    assert repos.git(repo, "show", "--format=%s", "--name-only").split() == ["Step", "7", "new7.txt"]
