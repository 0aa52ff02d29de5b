"""Values that describe what happened to files: changes, snapshots, merges, workspaces."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Literal

from harness.model.ids import CommitId, RefName, TreeId
from harness.model.late import dataclass


class Kind(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs between two trees; renames are a deletion and an addition."""

    kind: Kind
    path: str


@dataclass(frozen=True, slots=True)
class WorkspaceKind:
    """How files come into a workspace, and why so.

    `checkout` (all of them), `overlay` (one shared checkout, changes apart) or `sparse` (those that a step needs).
    """

    name: Literal["overlay", "checkout", "sparse"]
    why: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One path as a step left it, exact to the byte; `mode` and `blob` are None where it was deleted."""

    path: bytes
    mode: str | None
    blob: str | None


@dataclass(frozen=True, slots=True)
class Workspace:
    """A sub-agent's checkout, its git dir (`admin`), and what the harness keeps beside them, out of the agent's reach."""

    name: str
    path: Path
    start: CommitId
    branch: RefName | None
    admin: Path
    private_index: Path
    private: Path
    sparse: bool = False
    """Whether files of the start point were left out of it."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The commit that the harness wrote from a workspace."""

    commit: CommitId
    tree: TreeId
    changes: tuple[Change, ...]
    agent_commits: tuple[CommitId, ...] = ()
    nested: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: str = ""
    """Why this content must not be merged; the commit then holds it in a form that git takes anywhere."""
    ignored: tuple[str, ...] = ()
    """New files, and folders of them, that ignore rules left out; at most a few of `ignored_total`."""
    ignored_total: int = 0


@dataclass(frozen=True, slots=True)
class Conflict:
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Merge:
    """A clean merge has a tree and no conflicts; a conflicted one has no tree."""

    tree: TreeId | None
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True, slots=True)
class ParentDrift:
    """What changed in the parent repository that the harness did not do."""

    tampered: tuple[str, ...] = field(default=())
    changed: tuple[str, ...] = field(default=())
