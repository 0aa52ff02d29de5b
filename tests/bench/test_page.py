"""The measurements as tables, and the command that prints them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import __main__ as command
from bench import matrix, page


def test_runs_are_a_table(made) -> None:
    """Whole output of two sizes."""
    assert page.runs([made(200, 1), made(7000, 8)]) == (
        "| work | by | seconds | ratio | ms a step | memory, all (MB) | memory, first (MB) | disk (MB) |\n"
        "|---|---|---|---|---|---|---|---|\n"
        "| 1 step on 200 files | plain git script | 1.00 | 1.00x | 1000.0 | 1 | 20 | 1 |\n"
        "| 1 step on 200 files | orchestrix, overlay | 0.01 | 1/100 | 10.0 | 1 | 20 | 1 |\n"
        "| 1 step on 200 files | orchestrix, checkout | 0.40 | 1/2.5 | 400.0 | 1 | 20 | 1 |\n"
        "| 8 steps on 7,000 files | plain git script | 8.00 | 1.00x | 1000.0 | 8 | 20 | 29 |\n"
        "| 8 steps on 7,000 files | orchestrix, overlay | 0.08 | 1/100 | 10.0 | 8 | 20 | 29 |\n"
        "| 8 steps on 7,000 files | orchestrix, checkout | 3.20 | 1/2.5 | 400.0 | 8 | 20 | 29 |"
    )


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


def test_a_size_that_has_no_room_is_left_out(tmp_path: Path) -> None:
    """The plain script has the worktrees of all steps at the same time."""
    told: list[str] = []
    sizes = matrix.Sizes({10**9: (1_000_000,)}, ())
    found = matrix.measure(sizes, 1, ["checkout"], str(tmp_path), told.append)
    assert found.cases == []
    assert told[0].startswith("1000000 steps on 1000000000 files: left out, ")
