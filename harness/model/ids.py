"""One type for each kind of name; a constructor refuses what the kind does not allow."""

from __future__ import annotations

import re
from typing import Self

from harness.errors import UsageError
from harness.model import limits

_RUN = re.compile(r"[a-z0-9][a-z0-9-]{0,199}")  # a nested run's has its parent's in it: `run-s2-s1n3`
_OID = re.compile(r"[0-9a-f]{40}")
_PATH_ID = re.compile(rf"\d{{1,6}}(\.\d{{1,6}}){{0,{limits.DELEGATION_LEVELS}}}")


class _Name(str):
    """A string that was checked once and is trusted afterwards."""

    __slots__ = ()
    pattern: re.Pattern[str]
    kind: str

    def __new__(cls, value: str) -> Self:
        if not cls.pattern.fullmatch(value):
            raise UsageError(f"{value!r:.80} is not a {cls.kind}", hint=f"a {cls.kind} matches {cls.pattern.pattern}")
        return super().__new__(cls, value)


class RunId(_Name):
    pattern = _RUN
    kind = "run id"


class CommitId(_Name):
    pattern = _OID
    kind = "commit id"


class TreeId(_Name):
    pattern = _OID
    kind = "tree id"


class TaskId(_Name):
    """A step's path id: `2`, `2.1`, `2.10`; ordered by number in each part, never as text."""

    pattern = _PATH_ID
    kind = "task id"

    @property
    def order(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.split("."))


class RefName(str):
    """A full ref name under `refs/`; short names are ambiguous (a tag wins over a branch)."""

    __slots__ = ()
    _BAD = re.compile(r"\.\.|[\x00-\x20\x7f~^:?*\[\\]|@\{|//|/\.|\.lock(/|$)|\.$|/$")

    def __new__(cls, value: str) -> Self:
        if not value.startswith("refs/") or cls._BAD.search(value):
            raise UsageError(f"{value!r:.120} is not a full ref name", hint="full ref names start with refs/")
        return super().__new__(cls, value)

    @classmethod
    def branch(cls, name: str) -> Self:
        """The ref of a branch, given by its short or full name."""
        return cls(name if name.startswith("refs/heads/") else f"refs/heads/{name}")

    @property
    def short(self) -> str:
        return self.removeprefix("refs/heads/")


def work_branch(run: RunId, task: TaskId) -> RefName:
    """The one branch that a step may write."""
    return RefName(f"refs/heads/orchestrix/{run}/{task}/work")


def candidate_branches(run: RunId, task: TaskId) -> str:
    """What the branches of a step's candidates begin with."""
    return f"refs/heads/orchestrix/{run}/{task}-"


def candidate_branch(run: RunId, task: TaskId, candidate: int) -> RefName:
    """The one branch that a candidate in a race may write."""
    return RefName(f"{candidate_branches(run, task)}{candidate}/work")


def integration_branch(run: RunId) -> RefName:
    return RefName(f"refs/heads/orchestrix/{run}/integration")


def keep_ref(run: RunId, task: TaskId, label: str) -> RefName:
    """Where work that must not be lost stays reachable."""
    return RefName(f"refs/orchestrix/keep/{run}/{task}/{label}")


def undone_ref(run: RunId, commit: CommitId) -> RefName:
    """Where a landing that was taken back stays reachable; `undone` is no task, so no step is restored from it."""
    return RefName(f"refs/orchestrix/keep/{run}/undone/{commit[:12]}")


def record_ref(run: RunId) -> RefName:
    return RefName(f"refs/orchestrix/runs/{run}")


def sub_agent_id(run: RunId, task: TaskId) -> str:
    return f"{run}/{task}"
