"""Where faults are played: a repository and a plan, copied from a template, and the judgement after the fault."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from support import checker
from support.workbench import ROOT, Result, Workbench, shell, write

DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 124, 130, 143}
KILLED = -9
_RECOVERIES = 6


class Launcher:
    """Calls the command line in forks of one warm process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("launcher.py")],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def call(self, cwd: Path, argv: Sequence[str], env: Mapping[str, str], trace: Sequence[str], files: Path) -> Result:
        out, err = files / "out", files / "err"
        order = {
            "argv": list(argv),
            "cwd": str(cwd),
            "env": {**os.environ, **env},
            "out": str(out),
            "err": str(err),
            "trace": list(trace),
        }
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        code = json.loads(self._process.stdout.readline())["code"]
        return Result(code, out.read_text(), err.read_text())


def template(folder: Path) -> Path:
    """Three steps: an action with a check, a program beside it, and one that stands on the first."""
    bench = Workbench(folder)
    more = {f"more/{number}.txt": "more\n" for number in range(40)}
    bench.commit({"a.txt": "start\n", "b.txt": "start\n", "old.txt": "old\n", **more}, "Start")
    bench.plan(
        write("a.txt", "zero\n", checks=["test -s a.txt"]),
        # What is no plain file makes git take the snapshot.
        shell("echo one > b.txt; rm old.txt; mkfifo pipe", title="program", owns=["b.txt", "old.txt"]),
        write("c.txt", "two\n", needs=[0]),
    )
    return folder


@dataclass(frozen=True)
class Stage:
    """One copy of the template."""

    root: Path
    launcher: Launcher
    before: checker.Fingerprint
    workspace: str

    @classmethod
    def copy(cls, source: Path, folder: Path, launcher: Launcher, workspace: str) -> Self:
        shutil.copytree(source, folder, symlinks=True)
        return cls(folder, launcher, checker.fingerprint(folder / "repo"), workspace)

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    @property
    def run_arguments(self) -> tuple[str, ...]:
        return ("run", str(self.root / "plan.json"), "-j", "1", "--json", "--workspace", self.workspace)

    def call(self, *argv: str, trace: Sequence[str] = (), **env: str) -> Result:
        surroundings = {"XDG_STATE_HOME": str(self.root / "state"), "SOURCE_DATE_EPOCH": "1700000000", **env}
        return self.launcher.call(self.repo, argv, surroundings, trace, self.root)

    def git(self, *args: str) -> str:
        done = subprocess.run(["git", *args], cwd=self.repo, capture_output=True, text=True, check=False)
        return (done.stdout + done.stderr).strip()

    def runs(self) -> list[dict[str, Any]]:
        """What the log knows, read without the harness."""
        database = self.repo / ".orchestrix/local/state.db"
        if not database.exists():
            return []
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchall():
                return []
            return [
                {"run_id": run, "exit_code": code} for run, code in db.execute("SELECT run_id, exit_code FROM runs")
            ]

    def recover(self) -> Result:
        """What a person does when the cause is gone: resume, or begin where nothing was logged; retry what failed."""
        known = self.runs()
        result = self.call("resume", "--json") if known else self.call(*self.run_arguments)
        for _ in range(_RECOVERIES):
            if result.code == 0:
                break
            failed = [
                step for step in result.envelope.get("data", {}).get("steps", []) if step["final_status"] == "failed"
            ]
            if not failed:
                break
            result = self.call("retry", "latest", str(failed[0]["idx"]), "--json")
        return result

    def tree(self) -> str:
        return self.git("rev-parse", f"refs/heads/orchestrix/{self.runs()[-1]['run_id']}/integration^{{tree}}")

    def problems(self, first: Result, wanted: str) -> list[str]:
        """Everything that is wrong after the first call, a recovery and its end; empty when nothing was harmed."""
        found = told(first)
        last = first if first.code == 0 else self.recover()
        found += told(last)
        if last.code != 0:
            return [*found, f"exit {first.code}, then {last.code}: {first.out.strip()}{last.out.strip()}"]
        found += checker.check(self.repo, before=self.before)
        if self.tree() != wanted:
            found.append("another tree")
        audit = self.call("audit", "--json")
        if audit.code != 0:
            found.append(f"audit: {audit.out}{audit.err}")
        return found


def told(result: Result) -> list[str]:
    """A call ends with a documented status and, at most, sentences: never with a traceback."""
    if result.code == KILLED:
        return []
    found = [f"traceback: {result.err[-1500:]}"] if "Traceback" in result.err else []
    if result.code not in DOCUMENTED:
        found.append(f"exit {result.code}: {result.err[-500:]}")
    return found
