"""The measurements as tables, and the command that prints them."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from bench import __main__ as command
from bench import ground as folders
from bench import page, picture, sizes
from bench.contenders import OVERLAY, PLAIN
from bench.footprint import Footprint
from bench.ground import Ground
from bench.matrix import Found, Matrix
from bench.timing import Comparison, Spent
from bench.work import Case


def test_runs_are_a_table(made) -> None:
    """Whole output of two sizes."""
    assert page.runs([made(200, 1), made(7000, 8)]) == (
        "| work | by | seconds | spread | ratio | ms a step | beyond its command | memory, all (MB) | memory, first (MB) | disk (MB) |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n"
        "| 1 step on 200 files | plain git script | 1.00 | +50% | 1.00x | 1000.0 | 998.0 | 1 | 20 | 1 |\n"
        "| 1 step on 200 files | orchestrix, overlay | 0.01 | +50% | 1/100 | 10.0 | 8.0 | 1 | 20 | 1 |\n"
        "| 1 step on 200 files | orchestrix, checkout | 0.40 | +50% | 1/2.5 | 400.0 | 398.0 | 1 | 20 | 1 |\n"
        "| 1 step on 200 files | the commands alone | 0.00 | +50% | 1/500 | 2.0 | 0.0 | 1 | 20 | 1 |\n"
        "| 8 steps on 7,000 files | plain git script | 8.00 | +50% | 1.00x | 1000.0 | 998.0 | 8 | 20 | 29 |\n"
        "| 8 steps on 7,000 files | orchestrix, overlay | 0.08 | +50% | 1/100 | 10.0 | 8.0 | 8 | 20 | 29 |\n"
        "| 8 steps on 7,000 files | orchestrix, checkout | 3.20 | +50% | 1/2.5 | 400.0 | 398.0 | 8 | 20 | 29 |\n"
        "| 8 steps on 7,000 files | the commands alone | 0.02 | +50% | 1/500 | 2.0 | 0.0 | 8 | 20 | 29 |"
    )


def test_what_was_not_measured_is_empty() -> None:
    """One round of one contender, without the script, its commands alone and a look at the disk."""
    times = Comparison({OVERLAY: [Spent(2.0, 1.0)]}, PLAIN, {})
    alone = Case("2 steps on 9 files", 9, 2, times, {OVERLAY: Footprint(20_000_000, 30_000_000)})
    assert page.runs([alone]).splitlines()[-1] == (
        "| 2 steps on 9 files | orchestrix, overlay | 2.00 |  |  | 1000.0 |  | 30 | 20 |  |"
    )
    assert "2000.0 ms</text>" in picture.svg({"alone": times})


def test_the_tables_stand_between_the_marks_of_a_page(tmp_path: Path) -> None:
    """What was there before is replaced; a page without marks is left alone."""
    target = tmp_path / "page.md"
    target.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    page.insert(target, "new")
    assert target.read_text() == f"before\n{page.BEGIN}\n\nnew\n\n{page.END}\nafter\n"
    target.write_text("no marks\n")
    with pytest.raises(ValueError, match="has no"):
        page.insert(target, "new")
    assert target.read_text() == "no marks\n"


def test_the_command_measures_prints_draws_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tiniest size, with everything that can be asked for; nothing promised about it is broken."""
    drawn, target = tmp_path / "speed.svg", tmp_path / "page.md"
    target.write_text(f"{page.BEGIN}{page.END}")
    flags = ["--files", "20", "--steps", "1", "--rounds", "1", "--workspace", "checkout", "--json", "--check"]
    code = command.main([*flags, "--svg", str(drawn), "--page", str(target), "--in", str(tmp_path)])
    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [(run["files"], run["steps"], list(run["by"])[:2]) for run in found["runs"]] == [
        (20, 1, ["plain git script", "orchestrix, checkout"])
    ]
    assert {stage["stage"] for stage in found["stages"]} == {
        "git worktree add",
        "git add --all && git commit",
        "git merge --no-ff",
    }
    assert found["startup"]["orchestrix --version"]["limit"] == 8.0
    assert found["growth"] == []
    assert {promise["kept"] for promise in found["promises"]} == {None}
    assert drawn.read_text().startswith("<svg ")
    assert "1 step on 20 files" in target.read_text()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_an_interrupted_measurement_prints_what_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page keeps the whole measurement that it has, and nothing is left on the disk."""
    target = tmp_path / "page.md"
    target.write_text("whole")

    def interrupted(_self: Matrix, _wanted: sizes.Sizes, found: Found) -> None:
        found.stages[20, "git worktree add"] = Comparison({"git worktree add": [Spent(1, 1)]}, "git worktree add", {})
        raise KeyboardInterrupt

    monkeypatch.setattr(Matrix, "measure", interrupted)
    # Whoever is impatient and interrupts once more does not stop the removal.
    monkeypatch.setattr(folders, "_remove_files", lambda _root: os.kill(os.getpid(), signal.SIGINT))
    assert command.main(["--page", str(target), "--in", str(tmp_path)]) == 130
    assert "| git worktree add, 20 files | git worktree add | 1000.0 | 1.00x |" in capsys.readouterr().out
    assert target.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [target]


def test_sizes_are_lists(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With commas or one by one, for generated repositories and for a real tree."""
    asked: list[sizes.Sizes] = []
    monkeypatch.setattr(Matrix, "measure", lambda _self, wanted, _found: asked.append(wanted))
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").write_text("x")
    for flags in (
        ["--files", "20,30", "--steps", "8", "--steps", "32"],
        ["--tree", f"{tmp_path}/tree", "--steps=8,32"],
    ):
        command.main([*flags, "--in", str(tmp_path)])
    assert [[(size.files, size.steps) for size in one.runs] for one in asked] == [
        [(20, 8), (20, 32), (30, 8), (30, 32)],
        [(1, 8), (1, 32)],
    ]
    assert [(one.stages, one.startup) for one in asked] == [((20, 30), True), ((1,), False)]


def test_a_size_that_has_no_room_is_left_out(ground: Ground) -> None:
    """The plain script has the worktrees of all steps at the same time."""
    told: list[str] = []
    found = Found()
    wanted = sizes.Sizes((sizes.Size(10**9, 1_000_000),), (), startup=False)
    Matrix(ground, told.append).measure(wanted, found)
    assert found.cases == []
    assert told[0].endswith("until the end: removal between sizes, which makes ext4 slow for a minute")
    assert told[1].startswith("1,000,000 steps on 1,000,000,000 files: left out, ")


def test_a_disk_without_room_for_all_is_cleared_between_sizes(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each size is measured all the same, on a repository that is made anew."""
    size = sizes.Size(20, 1, ("the commands alone",))
    monkeypatch.setattr(sizes, "lacking", lambda _folder, files: "no room" if files > size.room(1) else None)
    first = ground.root
    found = Found()
    Matrix(ground, lambda _: None, rounds=1).measure(sizes.Sizes((size, size), (), startup=False), found)
    assert len(found.cases) == 2
    assert not first.exists()
    assert ground.root.exists()
