"""Plans as users hand them in: YAML, JSON, stdin, and everything that is wrong with them."""

from __future__ import annotations

import io
import json
import os
import sys

import pytest
from support.workbench import Workbench

YAML = """\
version: 1
goal: Two files
steps:
  - title: One
    owns: [one.txt]
    actions: [{write_file: {path: one.txt, content: "1\\n"}}]
  - title: Two
    owns: ["*.txt"]
    command: [sh, -c, "cat one.txt > two.txt"]
"""


class Stdin:
    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode())


def test_a_plan_from_stdin_and_from_a_yaml_file(bench: Workbench, monkeypatch) -> None:
    """Both run; the implied need of the overlapping step is in effect and explained."""
    monkeypatch.setattr(sys, "stdin", Stdin(YAML))
    done = bench.call("run", "-", "--json")
    assert done.code == 0, done.out
    assert bench.tree(done.data["head"])["two.txt"] == "1"
    path = bench.root / "plan.yaml"
    path.write_text(YAML)
    assert bench.call("run", str(path), "--json").code == 0
    told = bench.call("validate", str(path))
    assert told.code == 0
    assert "*.txt" in told.out
    drawn = bench.call("graph", str(path)).out
    assert drawn.startswith(("graph", "flowchart"))
    assert json.loads(bench.call("schema").out)["title"] == "Orchestrix plan"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version: 1\nsteps:\n  - titel: x\n    command: [a]\n", ["3", "titel", "title"]),
        ("version: 1\nsteps:\n  - title: x\n    command: [a]\n    command: [b]\n", ["5", "command"]),
        ("version: 2\nsteps:\n  - {title: x, command: [a]}\n", ["1", "version"]),
        ("version: 1\nsteps:\n  - {title: x, command: [a], needs: [0]}\n", ["needs"]),
        ("version: 1\nsteps:\n  - {title: x, command: [a], needs: [ghost]}\n", ["ghost"]),
        ("version: 1\nsteps:\n  - {title: x, command: [a], owns: ['../up']}\n", ["../up"]),
        ("version: 1\nsteps:\n  - {title: x, command: [a], timeout: soon}\n", ["timeout"]),
        ("version: 1\nsteps:\n  - {title: x, command: [a], actions: [{run: b}]}\n", ["step"]),
        ("version: 1\nsteps:\n  - {title: x}\n", ["agent"]),
        ("version: 1\nsteps: []\n", ["steps"]),
        ('version: 1\nsteps:\n  - title: "a\\nb"\n    command: [a]\n', ["title"]),
        ("version: 1\nsteps:\n\t- title: x\n", ["3"]),
        ("a: &a [1,2]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\n", ["unknown"]),
        ("", ["empty"]),
        ("\x00", ["plan"]),
        ("[" * 5000, ["plan"]),
    ],
)
def test_a_bad_plan_is_refused_with_its_place(bench: Workbench, text: str, words: list[str]) -> None:
    """Exit 2 for `validate` and `run` alike; file, line, column and field; nothing is made, no traceback."""
    path = bench.root / "bad-plan.yaml"
    path.write_text(text)
    for command in ("validate", "run"):
        answer = bench.call(command, str(path), "--json")
        assert (answer.code, answer.envelope["error"]["code"]) == (2, "plan_invalid"), answer
        problems = answer.envelope["error"]["errors"]
        assert problems
        assert all({"file", "line", "column", "field", "message", "suggestion"} <= set(row) for row in problems)
        said = json.dumps(problems)
        assert all(word in said for word in words), said
    assert not (bench.files / ".orchestrix").exists()
    people = bench.call("run", str(path))
    assert (people.code, people.out) == (2, "")
    assert f"{path}:" in people.err


def test_a_plan_that_is_no_file(bench: Workbench) -> None:
    """A directory, a pipe that nobody writes to, binary content: exit 2, at once."""
    os.mkfifo(bench.root / "pipe")
    (bench.root / "binary").write_bytes(bytes(range(256)) * 10)
    for name in (".", "pipe", "binary"):
        answer = bench.call("validate", str(bench.root / name), "--json")
        assert (answer.code, answer.envelope["ok"]) == (2, False), name
