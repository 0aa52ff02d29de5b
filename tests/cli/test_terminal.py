"""People and pipes: what reaches a terminal, what happens when the reader leaves, what follows a live run."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import pytest
from support.workbench import ROOT, Workbench, shell, write

from harness.cli.app import COMMANDS


def piped(bench: Workbench, command: str) -> subprocess.CompletedProcess[bytes]:
    """A shell pipeline in the repository, with `orchestrix` being this project."""
    script = f'orchestrix() {{ "{sys.executable}" -m harness "$@"; }}; set -o pipefail; {command}'
    return subprocess.run(
        ["bash", "-c", script],
        cwd=bench.files,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
        timeout=60,
    )


def on_a_terminal(bench: Workbench, *args: str, **env: str) -> bytes:
    """Everything that the command writes when stdin, stdout and stderr are a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", *args],
        cwd=bench.files,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **env},
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    seen = b""
    try:
        while part := os.read(leader, 65536):
            seen += part
    except OSError:
        pass  # Linux answers EIO when the last writer is gone
    finally:
        os.close(leader)
        process.wait(timeout=60)
    return seen


def test_a_reader_that_leaves_is_no_error(bench: Workbench) -> None:
    """`events | head -1`: exit 0, nothing on stderr; neither is a stdout that was closed from the start."""
    bench.run(*(write(f"{number}.txt", "x\n" * 50) for number in range(3)))
    for command in ("orchestrix events --jsonl", "orchestrix diff"):
        done = piped(bench, f"for n in 1 2; do {command}; done | head -1 > /dev/null")
        assert (done.returncode, done.stderr) == (0, b""), command
    closed = piped(bench, "orchestrix status >&-")
    assert b"Traceback" not in closed.stderr


def test_output_survives_a_locale_that_cannot_show_it(bench: Workbench) -> None:
    """LC_ALL=C and ASCII stdout: no UnicodeEncodeError for a title or a path of another script."""
    bench.run(write("naïve-日本.txt", "x\n", title="Größe 日本"))
    for command in ("status", "status latest --json", "report latest --step 0"):
        done = piped(bench, f"PYTHONUTF8=0 PYTHONIOENCODING=ascii PYTHONCOERCECLOCALE=0 LC_ALL=C orchestrix {command}")
        assert (done.returncode, done.stderr) == (0, b""), command


def test_a_report_is_piped_as_it_is_and_rendered_on_a_terminal(bench: Workbench) -> None:
    """The bytes in the pipe are the bytes of the file; the terminal gets no front matter."""
    done = bench.run(shell("echo 1 > x.txt", description="Some *text*"))
    text = (bench.files / done.steps[0]["report"]).read_bytes()
    assert piped(bench, "orchestrix report latest --step 0").stdout == text
    shown = on_a_terminal(bench, "report", "latest", "--step", "0")
    assert b"sub_agent:" not in shown
    assert b"What was asked" in shown


def test_no_color_and_hostile_titles_on_a_terminal(bench: Workbench) -> None:
    """With NO_COLOR there is no colour; whatever a title holds, the terminal obeys nothing of it."""
    plan = bench.plan(shell("printf '\\033]0;owned\\007'; echo 1 > x.txt", title="evil \u009b31m title"))
    shown = on_a_terminal(bench, "run", str(plan), NO_COLOR="1")
    assert b"evil" in shown
    assert "\u009b".encode() not in shown
    assert b"owned" not in shown
    assert not re.search(rb"\x1b\[[0-9;]*[13][0-9]m", shown)
    coloured = on_a_terminal(bench, "run", str(plan))
    assert re.search(rb"\x1b\[[0-9;]*3[0-9]m", coloured)
    for args in (("logs",), ("report", "latest", "--step", "0")):
        raw = on_a_terminal(bench, *args, NO_COLOR="1").replace(b"\r\n", b"\n")
        assert b"\x1b]" not in raw, args
        assert "\u009b".encode() not in raw, args


def test_plain_lines_where_there_is_no_terminal(bench: Workbench) -> None:
    """Progress goes to stderr as lines, data to stdout; --quiet silences the first."""
    plan = str(bench.plan(write("x.txt", "x\n")))
    done = bench.call("run", plan)
    assert "step 0 merged as" in done.err
    assert "orchestrix land" in done.out
    assert "\x1b" not in done.out + done.err
    assert bench.call("run", plan, "--quiet").err == ""


def test_events_follow_a_live_run_to_its_end(bench: Workbench) -> None:
    """Nothing is missed, nothing is doubled, and it ends with the run; a run that was landed has ended, too."""
    gate = bench.root / "gate"
    plan = bench.plan(shell(f"while ! test -e {gate}; do sleep 0.05; done; echo 1 > x.txt"))
    running = bench.process("run", str(plan), "--json", "--land", "--run-id", "live")
    while not bench.git("for-each-ref", "refs/heads/orchestrix/live/0/work"):
        assert running.poll() is None
    following = bench.process("events", "live", "--follow", "--jsonl")
    assert following.stdout is not None
    first = [following.stdout.readline() for _ in range(3)]
    gate.touch()
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, out + err
    seen = [json.loads(line) for line in [*first, *following.stdout]]
    assert following.communicate(timeout=30)[1] == ""
    assert seen == bench.events("live")[: len(seen)]
    assert "run.finished" in [event["type"] for event in seen]
    again = bench.process("events", "live", "--follow", "--jsonl", "--after", "1000")
    assert again.communicate(timeout=30) == ("", "")


@pytest.mark.parametrize("command", ["bash", "zsh", "fish"])
def test_completion_scripts(bench: Workbench, command: str) -> None:
    """Each shell gets its own; the one for bash is valid bash."""
    script = bench.call("completion", command).out
    assert "orchestrix" in script
    if command == "bash":
        assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


def test_help_is_there_for_every_command(bench: Workbench) -> None:
    """Exit 0 and a usage line."""
    for name in COMMANDS:
        answer = bench.call(name, "--help")
        assert answer.code == 0, name
        assert "Usage: orchestrix" in answer.out
    assert bench.call("--help").code == 0
