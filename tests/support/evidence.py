"""What the checker looks at: the log and its rows, and the repository through the git program."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

DATABASE = Path(".orchestrix") / "local" / "state.db"

Row = dict[str, Any]


@dataclass(frozen=True)
class Log:
    """One run: its row, the rows of its sub-agents, and its events with parsed payloads."""

    run_id: str
    run: Row
    sub_agents: dict[str, Row]
    events: list[Row]

    def of(self, *types: str) -> list[Row]:
        return [event for event in self.events if event["type"] in types]

    @property
    def created(self) -> Row:
        return next((event["payload"] for event in self.events if event["type"] == "run.created"), {})

    @property
    def ended(self) -> bool:
        """Whether the log says that nothing more will happen to the steps."""
        after = [event["type"] for event in self.of("run.started", "run.finished", "agent.subagent_created")]
        return after[-1:] == ["run.finished"]


@dataclass(frozen=True)
class Commit:
    tree: str
    parents: tuple[str, ...]


class Repository:
    """Read-only questions to git; nothing here writes an index, a ref or an object."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def ask(self, *args: str, accept: tuple[int, ...] = (0,)) -> bytes:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        env = clean | {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(["git", "-C", self.root, *args], env=env, capture_output=True, check=False)
        if done.returncode not in accept:
            said = (done.stderr + done.stdout).decode(errors="replace")
            raise RuntimeError(f"git {' '.join(args)}: {' '.join(said.split())}")
        return done.stdout

    @cached_property
    def common_dir(self) -> Path:
        found = self.ask("rev-parse", "--path-format=absolute", "--git-common-dir")
        return Path(os.fsdecode(found.rstrip(b"\n")))

    @cached_property
    def git_dir(self) -> Path:
        return Path(os.fsdecode(self.ask("rev-parse", "--absolute-git-dir").rstrip(b"\n")))

    @cached_property
    def refs(self) -> dict[str, str]:
        listed = self.ask("for-each-ref", "--format=%(refname) %(objectname)").decode(errors="surrogateescape")
        return dict(line.rsplit(" ", 1) for line in listed.splitlines())

    @cached_property
    def reachable(self) -> dict[str, Commit]:
        """Every commit that some ref leads to."""
        listed = self.ask("rev-list", "--all", "--no-commit-header", "--format=%H %T %P").decode()
        rows = (line.split() for line in listed.splitlines())
        return {commit: Commit(tree, tuple(parents)) for commit, tree, *parents in rows}

    def differing(self, old: str, new: str) -> set[str]:
        listed = self.ask("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new, "--")
        return {name.decode("utf-8", "backslashreplace") for name in listed.split(b"\0") if name}

    def first_parents(self, tip: str, base: str) -> list[str]:
        """From the commit after `base` up to `tip`; everything down to a root when `base` is not on the way."""
        line: list[str] = []
        while tip != base and tip in self.reachable:
            line.append(tip)
            parents = self.reachable[tip].parents
            if not parents:
                break
            tip = parents[0]
        return line[::-1]


def logs(repo: Path, run_id: str | None = None) -> list[Log]:
    """Every run of the repository, or the one that was asked for; raises FileNotFoundError without a database.

    A copy is opened: a log that a killed process left is recovered there, and the original stays as it is.
    """
    original = repo / DATABASE
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy(original, scratch)
        wal = original.with_name(f"{original.name}-wal")
        if wal.exists():
            shutil.copy(wal, scratch)
        with closing(sqlite3.connect(Path(scratch) / original.name)) as database:
            database.row_factory = sqlite3.Row
            known = [row[0] for row in database.execute("SELECT run_id FROM runs UNION SELECT run_id FROM events")]
            return [_log(database, name) for name in known if run_id in (None, name)]


def _log(database: sqlite3.Connection, run_id: str) -> Log:
    def rows(table: str, order: str) -> list[Row]:
        found = database.execute(f"SELECT * FROM {table} WHERE run_id = ? ORDER BY {order}", (run_id,))
        return [dict(row) for row in found]

    events = [row | {"payload": json.loads(row["payload"])} for row in rows("events", "seq")]
    agents = {row["sub_agent_id"]: row for row in rows("sub_agents", "rowid")}
    return Log(run_id, next(iter(rows("runs", "rowid")), {}), agents, events)
