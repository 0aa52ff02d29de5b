"""Writes docs/reference/cli.md from the `--help` of every command: `python docs/generate_cli.py`."""  # noqa: INP001 - a script, no package

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

from harness.cli.app import COMMANDS, run

PAGE = Path(__file__).parent / "reference" / "cli.md"
_INTRODUCTION = """# Commands

Generated from `--help` by `python docs/generate_cli.py`; do not edit. `python -m harness` is the same program.

- Data goes to stdout, progress and errors to stderr. `--json` prints one envelope, see [JSON](json.md).
- RUN is a run id, the beginning of one, or `latest`. STEP is an index (from 0) or the id that the plan gave the step.
- PLAN is looked up where you are, and then in the directory given with `-C`.
- Exit statuses are in [exit codes](exit-codes.md).
"""
_GROUPS = {"agents": ("check",), "config": ("show",)}
_WIDTH = "80"


def page() -> str:
    """The whole page."""
    calls = [[], *([name] for name in COMMANDS), *([name, sub] for name in _GROUPS for sub in _GROUPS[name])]
    return "\n".join([_INTRODUCTION, *(_section(words) for words in calls)])


def _section(words: list[str]) -> str:
    return f"## orchestrix {' '.join(words)}".rstrip() + f"\n\n```text\n{_help(words)}\n```\n"


def _help(words: list[str]) -> str:
    shown = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _WIDTH
    try:
        with contextlib.redirect_stdout(shown):
            run([*words, "--help"])
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return "\n".join(line.rstrip() for line in shown.getvalue().splitlines()).strip()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
