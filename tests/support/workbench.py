"""A repository to run plans on, and the command line called in this process."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.cli import app

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Result:
    """What a call of the command line gave."""

    code: int
    out: str
    err: str

    @property
    def envelope(self) -> dict[str, Any]:
        return json.loads(self.out)

    @property
    def data(self) -> dict[str, Any]:
        return self.envelope["data"]

    @property
    def steps(self) -> list[dict[str, Any]]:
        return self.data["steps"]

    @property
    def reasons(self) -> list[str]:
        return [step["close_reason"] for step in self.steps]


class Workbench:
    """One repository under test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = root / "repo"
        self.files.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")

    def git(self, *args: str, check: bool = True, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *args], cwd=cwd or self.files, capture_output=True, text=True, check=False, errors="surrogateescape"
        )
        if check and done.returncode:
            raise AssertionError(f"git {args}: {done.stderr}")
        return done.stdout.strip()

    def commit(self, files: dict[str, str], message: str = "Change") -> str:
        for name, text in files.items():
            path = self.files / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def plan(self, *steps: dict[str, Any], **fields: Any) -> Path:
        """Writes a plan file outside the repository."""
        path = self.root / "plan.json"
        path.write_text(json.dumps({"version": 1, **fields, "steps": list(steps)}))
        return path

    def call(self, *args: str) -> Result:
        """The command line in this process, in this repository."""
        out, err = io.StringIO(), io.StringIO()
        before = Path.cwd()
        os.chdir(self.files)
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = app.run(list(args))
        finally:
            os.chdir(before)
        return Result(code, out.getvalue(), err.getvalue())

    def run(self, *steps: dict[str, Any], flags: tuple[str, ...] = (), **fields: Any) -> Result:
        """Runs a plan of these steps with --json."""
        return self.call("run", str(self.plan(*steps, **fields)), "--json", *flags)

    def process(self, *args: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """The command line as a process of its own, for tests that kill it."""
        return subprocess.Popen(
            [sys.executable, "-m", "harness", *args],
            cwd=self.files,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def events(self, run_id: str = "latest") -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.call("events", run_id, "--jsonl").out.splitlines()]

    def types(self, task: str, run_id: str = "latest") -> list[str]:
        """The event types of one step, in order."""
        return [event["type"] for event in self.events(run_id) if event["task_id"] == task]

    def tree(self, revision: str) -> dict[str, str]:
        """Path to content of every file in a revision."""
        names = self.git("ls-tree", "-r", "--name-only", "-z", revision).split("\0")
        return {name: self.git("show", f"{revision}:{name}") for name in names if name}


def shell(script: str, **fields: Any) -> dict[str, Any]:
    """A step that runs a shell script."""
    return {"title": fields.pop("title", script[:60].replace("\n", " ")), "command": ["sh", "-c", script], **fields}


def write(path: str, content: str, **fields: Any) -> dict[str, Any]:
    """A step that writes one file."""
    title = fields.pop("title", f"write {path}")
    return {"title": title, "actions": [{"write_file": {"path": path, "content": content}}], "owns": [path], **fields}
