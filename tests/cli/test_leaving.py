"""How the process ends: at once, with everything said and the whole log in its file."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from support.workbench import Workbench, write


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    made = Workbench(tmp_path)
    made.commit({"README.md": "hello\n"})
    return made


def test_the_log_is_in_its_file_when_the_process_has_ended(bench: Workbench) -> None:
    """No write-ahead log is left behind: the file alone can be copied."""
    run = bench.process("run", str(bench.plan(write("x.txt", "x\n"))), "--json", "--sandbox", "none")
    out, err = run.communicate()
    assert run.returncode == 0, out + err
    local = bench.files / ".orchestrix/local"
    assert [path.name for path in sorted(local.glob("state.db*"))] == ["state.db"]


def test_everything_was_said_before_the_end(bench: Workbench) -> None:
    """A pipe gets the last line, also of more than a buffer."""
    saying = bench.process("schema")
    out, _ = saying.communicate()
    assert saying.returncode == 0
    assert len(out) > io.DEFAULT_BUFFER_SIZE
    assert json.loads(out)["title"] == "Orchestrix plan"


@pytest.mark.parametrize("words", [("--dry-run",), ()])
def test_a_run_that_does_not_come_about_leaves_no_git_at_work(bench: Workbench, words: tuple[str, ...]) -> None:
    """What was begun ahead of reading the plan is no whole checkout, and nobody works on it."""
    bench.commit({f"many/{folder}/f{number}": "x" * 500 for folder in range(20) for number in range(100)})
    plan = bench.plan(write("x.txt", "x\n") if words else {"title": 3})
    run = bench.process("run", str(plan), *words)
    out, err = run.communicate()
    assert run.returncode == (0 if words else 2), out + err
    at_work = [path for path in Path("/proc").glob("[0-9]*/cwd") if _leads_into(path, bench.root)]
    assert at_work == []
    assert list(bench.root.rglob("card.json")) == []


def _leads_into(link: Path, folder: Path) -> bool:
    try:
        return folder in link.readlink().parents and "_templates" in str(link.readlink())
    except OSError:
        return False
