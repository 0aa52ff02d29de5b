"""Tools that look: directories, names, contents, changes; nothing outside, nothing without end."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.errors import ContractViolation, ToolFailed
from harness.model import limits
from harness.model.process import ProcessResult, ProcessSpec
from harness.sandbox import choice
from harness.tools.broker import Broker
from harness.tools.table import TOOLS
from tests.tools.conftest import contract_with


class Real:
    """A broker whose programs really run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = root / "workspace"
        self.workspace.mkdir()

    def call(self, tool: str, **arguments: Any) -> str:
        broker = Broker(contract_with(*TOOLS), self.workspace, self._execute, lambda *_, **__: None)
        return asyncio.run(broker.call(tool, arguments))

    async def _execute(
        self, argv: Sequence[str], *, purpose: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> ProcessResult:
        spec = ProcessSpec(
            tuple(argv), self.workspace, {"PATH": os.environ["PATH"], **(env or {})}, self.root / "log", 30_000
        )
        return await choice.choose("none").run(spec, on_start=lambda who: None)


@pytest.fixture
def real(tmp_path: Path) -> Real:
    made = Real(tmp_path)
    (made.workspace / "src").mkdir()
    (made.workspace / "src" / "a.py").write_text("import os\nprint('Found me')\n")
    (made.workspace / "src" / "b.txt").write_text("nothing\n")
    (made.workspace / ".git").mkdir()
    (made.workspace / ".git" / "config").write_text("Found in git\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("Found outside\n")
    (made.workspace / "out").symlink_to("../outside")
    (made.workspace / "inner").symlink_to("src")
    return made


def test_a_directory_is_listed_with_marks_and_without_git(real) -> None:
    """The root by a dot; directories and links are told apart."""
    assert real.call("list_dir") == "inner@\nout@\nsrc/"
    assert real.call("list_dir", path="inner") == "a.py\nb.txt"
    (real.workspace / "empty").mkdir()
    assert real.call("list_dir", path="empty/.") == "(empty)"


def test_long_answers_are_cut_and_say_so(real, monkeypatch) -> None:
    """Entries, names and matches have a limit."""
    monkeypatch.setattr(limits, "TOOL_ENTRIES", 1)
    assert real.call("list_dir") == "inner@\n[... 2 more ...]"
    assert real.call("glob", pattern="**") == "src/a.py\n[... 1 more ...]"


def test_names_are_found_in_the_language_of_ownership(real) -> None:
    """Links are names, not ways."""
    assert real.call("glob", pattern="src") == "src/a.py\nsrc/b.txt"
    assert real.call("glob", pattern="**/*.py") == "src/a.py"
    assert real.call("glob", pattern="*.rs") == "nothing matches"
    with pytest.raises(ToolFailed) as caught:
        real.call("glob", pattern="/etc/*")
    assert caught.value.message == "the pattern is absolute"


def test_contents_are_searched_with_file_and_number(real) -> None:
    """Neither git's files nor what a link leads to; an expression is never taken for an option."""
    assert real.call("grep", pattern="Fo+und") == "./src/a.py:2:print('Found me')\n"
    assert real.call("grep", pattern="Found", path="inner") == "./src/a.py:2:print('Found me')\n"
    assert real.call("grep", pattern="--version") == "nothing matches"
    assert real.call("grep", pattern="absent") == "nothing matches"
    assert "Unmatched" in real.call("grep", pattern="(")


def test_a_minified_file_does_not_flood_the_answer(real) -> None:
    (real.workspace / "min.js").write_text("Found" + "x" * 1_000_000 + "\n")
    assert len(real.call("grep", pattern="Found", path="min.js")) <= limits.TOOL_LINE_CHARS + 1


@pytest.mark.parametrize("tool", ["list_dir", "grep", "git_diff"])
@pytest.mark.parametrize("path", ["..", "/etc", "src/../..", "out", "out/secret", ".git", ".orchestrix/local"])
def test_nothing_outside_can_be_looked_at(real, tool, path) -> None:
    """Links are followed to where they lead before anything is decided."""
    with pytest.raises(ContractViolation):
        real.call(tool, path=path, **({"pattern": "x"} if tool == "grep" else {}))


@pytest.mark.parametrize("tool", ["list_dir", "grep", "git_diff"])
def test_what_is_not_there_is_a_failure(real, tool) -> None:
    with pytest.raises(ToolFailed):
        real.call(tool, path="src/none", **({"pattern": "x"} if tool == "grep" else {}))


def test_changes_are_shown_and_new_files_named(real) -> None:
    """Against the last commit, without running what attributes name."""
    (real.workspace / ".git" / "config").unlink()
    (real.workspace / ".git").rmdir()
    for command in (
        ["init", "-q"],
        ["add", "src"],
        ["-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *command], cwd=real.workspace, check=True)
    assert real.call("git_diff", path="src") == "nothing has changed"
    (real.workspace / "src" / "b.txt").write_text("something\n")
    (real.workspace / "src" / "c.txt").write_text("new\n")
    shown = real.call("git_diff", path="src")
    assert "-nothing\n+something\n" in shown
    assert shown.endswith("new file: src/c.txt\n")


def test_a_shell_answers_with_exit_code_and_output(real) -> None:
    """A failing command is an answer; one that does not end is ended."""
    assert real.call("shell", command="echo out; exit 3") == "exit code 3\nout\n"
    with pytest.raises(ToolFailed) as caught:
        real.call("shell", command="sleep 60", timeout_s=1)
    assert caught.value.message == "`sleep 60` did not end within 1 seconds"
