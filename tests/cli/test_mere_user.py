"""Every command that drives a run, as a user without any right of root's and on a terminal: workspaces are overlays throughout."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.coordinators import holder_of, is_gone, wait_until
from support.parts import MERE_USER
from support.workbench import ROOT, Workbench, shell, write

SCRIBE = """
[agents.scribe]
command = ["sh", "-c", "echo done > scribbled.txt"]
"""
OVERLAY = ("overlay", "overlays can be mounted here")


class Terminal:
    """A command on a terminal of its own, as a shell would start it."""

    def __init__(self, bench: Workbench, *args: str) -> None:
        self._leader, follower = pty.openpty()
        self.process = subprocess.Popen(
            [*MERE_USER, sys.executable, "-m", "harness", *args],
            cwd=bench.files,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"},
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # noqa: PLW1509 - makes it the controlling one; no thread is there
        )
        os.close(follower)
        self.shown = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # Linux answers EIO when the last writer is gone
            while part := os.read(self._leader, 65536):
                self.shown += part

    def press(self, keys: bytes) -> None:
        os.write(self._leader, keys)

    def end(self) -> int:
        """Its exit code; nothing reads from the terminal any more."""
        code = self.process.wait(timeout=120)
        self._reader.join()
        os.close(self._leader)
        return code


@pytest.fixture
def gate(bench: Workbench) -> Path:
    """Where a held step looks whether it may go on."""
    return bench.root / "gate"


def kinds(bench: Workbench, run: str = "latest") -> set[tuple[str, str]]:
    """Kind and reason of every workspace of a run and those below it."""
    made = [event["payload"] for event in bench.events(run) if event["type"] == "workspace.preparing"]
    return {(payload["workspace"], payload["why"]) for payload in made}


def held(bench: Workbench, gate: Path) -> Path:
    """A plan whose second step stands on what the first one made, and waits."""
    script = f"test -e first.txt && echo half > second.txt && touch .up && until [ -e '{gate}' ]; do sleep 0.02; done; rm .up"
    return bench.plan(
        write("first.txt", "1\n"), shell(script, needs=[0], owns=["second.txt"], checks=["test -s first.txt"])
    )


def until_held(bench: Workbench, terminal: Terminal) -> None:
    """The step has written; that is in the layer that takes its changes, which everybody sees."""
    state = Path(os.environ["XDG_STATE_HOME"])

    def written() -> bool:
        assert terminal.process.poll() is None, terminal.shown.decode()
        return any(state.glob("orchestrix/*/*/layers/*/upper/.up"))

    wait_until(written, "a held step in an overlay")


@contextlib.contextmanager
def interrupted(bench: Workbench, gate: Path, command: tuple[str, ...]) -> Iterator[Terminal]:
    """A run that is under way; its holder is gone afterwards."""
    terminal = Terminal(bench, *command)
    until_held(bench, terminal)
    holder = holder_of(terminal.process.pid)
    assert holder is not None
    yield terminal
    wait_until(lambda: is_gone(holder), "the end of the holder")


@pytest.mark.parametrize("how", ["ctrl-c", "kill"])
def test_run_interrupted_and_resumed(bench: Workbench, gate: Path, how: str) -> None:
    """The live display has a thread of its own before the first workspace is mounted again."""
    with interrupted(bench, gate, ("run", str(held(bench, gate)))) as terminal:
        if how == "ctrl-c":
            terminal.press(b"\x03")
        else:
            terminal.process.kill()
        assert terminal.end() == (130 if how == "ctrl-c" else -9)
    gate.touch()
    again = Terminal(bench, "resume", "latest")
    assert again.end() == 0, again.shown.decode()
    assert kinds(bench) == {OVERLAY}
    head = bench.call("status", "latest", "--json").data["head"]
    assert bench.tree(head).keys() >= {"first.txt", "second.txt"}


def test_retry(bench: Workbench, gate: Path) -> None:
    """The step that failed is done again, in an overlay as well."""
    plan = bench.plan(shell(f"test -e '{gate}' && echo 1 > x.txt", owns=["x.txt"]))
    first = Terminal(bench, "run", str(plan))
    assert first.end() == 1, first.shown.decode()
    gate.touch()
    again = Terminal(bench, "retry", "latest", "0")
    assert again.end() == 0, again.shown.decode()
    assert kinds(bench) == {OVERLAY}
    assert len([event for event in bench.events() if event["type"] == "workspace.preparing"]) >= 1


def test_agent(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A goal, planned by a model that follows a script."""
    (bench.files / ".orchestrix").mkdir()
    (bench.files / ".orchestrix" / "config.toml").write_text(SCRIBE)
    (bench.files / ".git" / "info" / "exclude").write_text(".orchestrix/\n")
    steps: list[dict[str, Any]] = [{"title": "Scribble", "description": "Scribble.", "owns": ["scribbled.txt"]}]
    script = bench.root / "script.json"
    script.write_text(json.dumps([{"shape": "PlanAnswer", "answer": {"steps": steps}}]))
    monkeypatch.setenv("ORCHESTRIX_MODEL", f"scripted:{script}")
    terminal = Terminal(bench, "agent", "scribble", "--agent", "scribe")
    assert terminal.end() == 0, terminal.shown.decode()
    assert kinds(bench) == {OVERLAY}


def test_a_program_with_threads_of_its_own(bench: Workbench) -> None:
    """The same from Python, where nobody can say which threads were there before."""
    plan = bench.plan(write("first.txt", "1\n"), shell("cat first.txt > second.txt", needs=[0], owns=["second.txt"]))
    script = """
import sys, threading
from pathlib import Path
from harness.cli import app
stop = threading.Event()
for _ in range(4):
    threading.Thread(target=stop.wait).start()
codes = [app.run(["run", sys.argv[1], "--json", "--run-id", name]) for name in ("one", "two")]
stop.set()
sys.exit(max(codes))
"""
    done = subprocess.run(
        [*MERE_USER, sys.executable, "-c", script, str(plan)],
        cwd=bench.files,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert kinds(bench) == {OVERLAY}


def test_runs_in_worker_threads_at_once(bench: Workbench) -> None:
    """A service calls the harness from a pool: each run has its overlays, and none takes them from another."""
    plan = bench.plan(write("first.txt", "1\n"), shell("cat first.txt > second.txt", needs=[0], owns=["second.txt"]))
    script = """
import sys
from concurrent.futures import ThreadPoolExecutor
from harness.cli import app
def run(name):
    return app.run(["run", sys.argv[1], "--run-id", name, "--quiet"])
with ThreadPoolExecutor(3) as pool:
    alone = pool.submit(run, "alone").result()
    codes = [alone, *pool.map(run, ["one", "two", "three"])]
sys.exit(max(codes))
"""
    done = subprocess.run(
        [*MERE_USER, sys.executable, "-c", script, str(plan)],
        cwd=bench.files,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("alone", "one", "two", "three"):
        assert kinds(bench, name) == {OVERLAY}
        assert bench.call("status", name, "--json").reasons == ["merged", "merged"]


FORBIDDEN = 'echo 1 > /proc/sys/user/max_user_namespaces && exec unshare --user --map-user=1000 --map-group=1000 "$@"'


def test_where_no_user_namespace_can_be_had_an_explicit_wish_is_refused_and_the_rest_is_told(bench: Workbench) -> None:
    """The kernel's limit is reached, as a distribution may forbid it: never silently another kind than was asked for."""
    plan = str(bench.plan(write("first.txt", "1\n")))

    def call(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                "unshare",
                "--user",
                "--map-root-user",
                "sh",
                "-c",
                FORBIDDEN,
                "sh",
                sys.executable,
                "-m",
                "harness",
                *args,
            ],
            cwd=bench.files,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    refused = call("run", plan, "--json", "--workspace", "overlay", "--sandbox", "none")
    error = json.loads(refused.stdout)["error"]
    assert (refused.returncode, error["code"]) == (3, "environment")
    assert error["message"] == (
        "overlay workspaces were asked for, but an overlay cannot be mounted: "
        "the system gives no namespace for mounts: No space left on device"
    )
    assert error["hint"] == "use `--workspace auto` or `--workspace checkout`"
    assert call("run", plan, "--json", "--sandbox", "none").returncode == 0
    assert {kind for kind, _why in kinds(bench)} == {"checkout"}
