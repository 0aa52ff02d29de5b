"""What is read without Typer is what Typer reads; everything else is left to Typer."""

from __future__ import annotations

import functools
import importlib

import pytest

from harness.cli import quick, typed
from harness.cli.app import COMMANDS

PLAIN = [
    "run plan.json",
    "run plan.json -q --jobs 3 --workspace overlay --sandbox none",
    "run -j 2 --land --base main --into=main plan.yaml --budget tokens=5 --budget attempts=2 -C there --run-id x",
    "run - --replay file.zip --dry-run --json --jsonl -v --keep --strict-parent --speculate 0",
    "status",
    "status latest --json",
    "status -C here",
    "validate plan.yaml",
    "events 2026 -f --after 12",
    "list --all",
    "graph --registry a:b",
    "land --into main --partial latest",
    "ci plan.json --base a=b",
    "logs latest 0 --raw",
    "retry latest 1",
    "plan goal --agent a --agent b --max-steps 4",
    "agent do --check x",
    "doctor --ask-model",
    "version",
]
UNSURE = [
    "",
    "--version",
    "-C there status",
    "unknown",
    "agents",
    "config show",
    "run",
    "run --help",
    "run plan.json --help",
    "run one two",
    "run plan.json --jobs",
    "run plan.json --jobs 0",
    "run plan.json --jobs x",
    "run plan.json --jobs -1",
    "run plan.json --jobs 99999999999",
    "run plan.json --jobs 1 --jobs 2",
    "run plan.json --sandbox sand",
    "run plan.json --land=yes",
    "run plan.json --base=",
    "run plan.json --bas main",
    "run plan.json -qv",
    "run plan.json -j2",
    "run plan.json --no-land",
    "run -- plan.json",
    "ci plan.json --strict-parent",
    "ci plan.json --no-strict-parent",
    "status --json=1",
]


class Recorder(typed.App):
    """Typer's commands, which tell what they were given instead of doing anything."""

    given: dict[str, object] | None = None

    def command(self, name=None, **settings):
        def register(function):
            typed._typed(function)

            @functools.wraps(function)
            def tell(**values):
                self.given = values

            return super(Recorder, self).command(name, **settings)(tell)

        return register


def by_typer(words: list[str]) -> dict[str, object]:
    app = Recorder(rich_markup_mode=None)
    app.callback()(lambda: None)
    importlib.import_module(f"harness.cli.commands.{words[0]}").register(app)
    typed.call(app, words)
    assert app.given is not None
    return app.given


@pytest.mark.parametrize("line", PLAIN)
def test_a_plain_line_is_read_as_typer_reads_it(line: str) -> None:
    """The same values; a parameter that is not given has the default that its function has."""
    found = quick.understood(line.split(), COMMANDS)
    assert found is not None
    told = by_typer(line.split())
    assert {name: told[name] for name in found.keywords} == found.keywords
    assert not any(
        value for name, value in told.items() if name not in found.keywords and value not in ("latest", True)
    )


@pytest.mark.parametrize("line", UNSURE)
def test_everything_else_is_left_to_typer(line: str) -> None:
    """Help, mistakes, abbreviations and the rarer spellings."""
    assert quick.understood(line.split(), COMMANDS) is None
