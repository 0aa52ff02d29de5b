"""All contenders do the same work, whatever the repository is made of."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bench import contenders, work
from bench.places import ROOT, Place
from fixtures import repos


def test_every_contender_is_timed_and_weighed(tmp_path: Path) -> None:
    """Two steps on a few files: whoever can take part here ends in the same tree, and leaves its numbers."""
    place = Place(tmp_path, files=20, steps=2)
    found = work.measure(place, rounds=1)
    names = list(found.times.spent)
    assert names[0] == "plain git script"
    assert "orchestrix, checkout" in names
    assert ("orchestrix, overlay" in names) is (contenders.missing(place, "overlay") is None)
    assert ("ralphy" in names) is (shutil.which("ralphy") is not None)
    assert found.footprints.keys() == found.times.spent.keys()
    assert all(spent.clock > 0 for spent in found.times.spent.values())
    assert all(0 < taken.first <= taken.tree and taken.disk > 0 for taken in found.footprints.values())
    assert found.title == "2 steps on 20 files"


def test_contenders_that_end_differently_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that does other work than the plan is no yardstick."""
    lazy = tmp_path / "lazy.sh"
    lazy.write_text("true\n")
    monkeypatch.setattr(contenders, "PLAIN_SCRIPT", lazy)
    with pytest.raises(RuntimeError, match="did not do the same work"):
        work.measure(Place(tmp_path / "place", files=20, steps=1), 1, ["checkout"])


def test_a_plan_may_have_more_steps_than_the_repository_has_files(tmp_path: Path) -> None:
    """Every step still writes three files of its own."""
    written = Place(tmp_path, files=5, steps=4).written
    assert written == [
        ("new0.txt", "pkg000/mod00000.py", "pkg000/mod00001.py"),
        ("new1.txt", "pkg000/mod00002.py", "pkg000/mod00003.py"),
        ("new2.txt", "more/file00000.py", "more/file00001.py"),
        ("new3.txt", "more/file00002.py", "more/file00003.py"),
    ]


@pytest.mark.parametrize("form", ["folder", "zip", "gztar"])
def test_a_real_tree_can_be_measured(tmp_path: Path, form: str) -> None:
    """A folder or an archive becomes the repository; files with odd names are there, but no step edits them."""
    repos.write(tmp_path / "tree", {"pkg/a.py": "A\n", "pkg/b c.py": "B\n", "pkg/d.py": "D\n", ".gitignore": "*.py\n"})
    tree = tmp_path / "tree"
    if form != "folder":
        tree = Path(shutil.make_archive(str(tmp_path / "packed"), form, tree))
    place = Place(tmp_path / "place", files=4, steps=1, tree=tree)
    assert repos.git(place.template, "ls-files").splitlines() == [".gitignore", "pkg/a.py", "pkg/b c.py", "pkg/d.py"]
    assert place.written == [("new0.txt", ".gitignore", "pkg/a.py")]


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
        env=Place(tmp_path, 1, 1).env | {"BENCH_STEPS": str(tmp_path), "HOME": os.environ["HOME"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"type":"result"' in done.stdout
    assert repos.git(repo, "show", "--format=%s", "--name-only").split() == ["Step", "7", "new7.txt"]
