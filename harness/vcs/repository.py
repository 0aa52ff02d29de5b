"""One repository behind the `Vcs` port: the parts of this layer put together, safe to call from many threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

from harness.errors import NotFound
from harness.model.changes import Change, Merge, ParentDrift, Snapshot, Workspace
from harness.model.ids import CommitId, RefName, RunId, TreeId, record_ref
from harness.ports import AgentRights
from harness.vcs import (
    adopt,
    agent_git,
    effective,
    land,
    merge,
    places,
    prepare,
    private,
    record,
    removal,
    repo,
    rights,
    snapshot,
)
from harness.vcs import workspace as worktrees
from harness.vcs.effective import Effective
from harness.vcs.git import Git
from harness.vcs.landmarks import Landmarks
from harness.vcs.objects import Objects
from harness.vcs.places import Place
from harness.vcs.private import PrivateDir
from harness.vcs.refs import Refs
from harness.vcs.tamper import Tripwire


class Repository:
    """Implements `harness.ports.Vcs` with git worktrees, private git dirs and compare-and-swap."""

    def __init__(self, root: Path, state_home: Path) -> None:
        self.layout = repo.discover(root)
        self.state_dir = repo.state_dir(state_home, self.layout)
        self._refs = Refs(self.layout)
        self._objects = Objects(self.layout.objects)
        self._landmarks = Landmarks(self._objects)
        self._tripwires: dict[RunId, Tripwire] = {}
        self._private: dict[RunId | None, PrivateDir] = {}
        self._run: RunId | None = None
        self._lock = threading.RLock()

    @classmethod
    def discover(cls, start: Path, state_home: Path | None = None) -> Self:
        """The repository whose checkout holds `start`; raises EnvironmentProblem with what to do about it."""
        return cls(start, state_home or repo.default_state_home())

    @property
    def root(self) -> Path:
        return self.layout.root

    @property
    def git_dir(self) -> Path:
        return self.layout.git_dir

    @property
    def common_dir(self) -> Path:
        return self.layout.common_dir

    @cached_property
    def _effective(self) -> Effective:
        return effective.read(self.layout)

    # Revisions and refs

    def resolve(self, revision: str) -> CommitId:
        """The commit that a revision names; raises UsageError."""
        return self._refs.resolve(revision)

    def head_branch(self) -> RefName | None:
        """The branch that the user's checkout is on; None when HEAD is detached."""
        return self._refs.head_branch()

    def read_ref(self, ref: RefName) -> CommitId | None:
        return self._refs.read(ref)

    def move_ref(self, ref: RefName, new: CommitId, old: CommitId | None) -> None:
        """Compare-and-swap; `old` None means that the ref must not exist; raises RefMoved."""
        with self._lock:
            self._refs.move(ref, new, old)
            self._note(ref, new)

    def delete_ref(self, ref: RefName, old: CommitId) -> None:
        """Deletes the ref if it still is at `old`; raises RefMoved."""
        with self._lock:
            self._refs.delete(ref, old)
            self._note(ref, None)

    def refs_under(self, prefix: str) -> dict[RefName, CommitId]:
        return self._refs.under(prefix)

    # Objects

    def tree_of(self, commit: CommitId) -> TreeId:
        return self._objects.tree_of(commit)

    def commit(self, tree: TreeId, parents: Sequence[CommitId], message: str, when: int) -> CommitId:
        """A commit object by the harness' identity; the same arguments give the same id."""
        return self._objects.commit(tree, parents, message, when=when, identity=self._effective.identity)

    def changes(self, old: CommitId, new: CommitId) -> tuple[Change, ...]:
        """Paths that differ between two commits, without rename detection, sorted."""
        return self._objects.changes(old, new)

    def diff(self, old: CommitId, new: CommitId) -> bytes:
        """A unified diff for people."""
        options = ("--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", "--submodule=short")
        return Git(self.common_dir).porcelain("diff", *options, old, new, "--").out

    def paths(self, commit: CommitId) -> tuple[str, ...]:
        """Every path in the tree of a commit, sorted."""
        return self._objects.paths(commit)

    def content(self, commit: CommitId, path: str) -> bytes | None:
        """A regular file of a commit; None where there is none, or one too large to be read by a person."""
        return self._objects.content(commit, path)

    def merge(self, ours: CommitId, theirs: CommitId, base: CommitId) -> Merge:
        """The three-way merge that `git merge` would make with this base, attributes included; touches no checkout."""
        own = self._private_of(self._run)
        return merge.three_way(self._objects, self._landmarks, own, ours=ours, theirs=theirs, base=base)

    def with_file(self, tree: TreeId, path: str, content: bytes) -> TreeId:
        """The tree with one regular file added or replaced."""
        return self._objects.with_file(tree, path, content)

    # Workspaces

    def open_workspace(self, run: RunId, name: str, start: CommitId, branch: RefName | None) -> Workspace:
        """A new worktree at `start`, on `branch` (created, or moved here) or detached; left-overs are removed first."""
        place = self._place(run, name)
        worktrees.remove(place)
        if branch is not None:
            with self._lock:
                old = self._refs.read(branch)
                if old != start:
                    self.move_ref(branch, start, old)
        return worktrees.create(place, self._private_of(run), start, branch)

    def prepare(self, run: RunId, name: str, copy: Sequence[str], link: Sequence[str]) -> None:
        """Brings `.worktreeinclude`, copy patterns and links from the user's checkout into a fresh workspace."""
        place, own = self._place(run, name), self._private_of(run)
        card = worktrees.read_card(place)
        if card is None:
            raise NotFound(f"run {run} has no workspace {name}", hint="open it first")
        prepare.fill(self.layout, own, place.tree, copy, link)
        left = prepare.untracked(own.git(place.tree, place.index), place.tree)
        worktrees.write_card(place, worktrees.Card(card.start, card.branch, left))

    def agent_rights(self, workspace: Workspace) -> AgentRights:
        """What git must be able to write when the agent commits inside a sandbox."""
        return rights.of(workspace, self.common_dir)

    def find_workspace(self, run: RunId, name: str) -> Workspace | None:
        """A workspace that an earlier coordinator made, if it is whole."""
        return worktrees.find(self._place(run, name))

    def workspace_path(self, run: RunId, name: str) -> Path:
        """Where `open_workspace` will make it."""
        return self._place(run, name).tree

    def snapshot(self, workspace: Workspace, message: str, when: int) -> Snapshot:
        """The files as they are, as a commit on the workspace's start point."""
        run = RunId(workspace.path.parent.parent.name)
        card = worktrees.read_card(self._place(run, workspace.name))
        start_tree = self.tree_of(workspace.start)
        gitlinks = [os.fsdecode(path) for path in self._landmarks.of(start_tree).gitlinks]
        taken = snapshot.take(
            self._private_of(run).git(workspace.path),
            workspace.private_index,
            gitlinks,
            prepare.untouched(workspace.path, card.prepared) if card else (),
        )
        made = self.commit(taken.tree, (workspace.start,), message, when)
        kept, told = self._agent_commits(run, workspace)
        return Snapshot(
            commit=made,
            tree=taken.tree,
            changes=self._objects.changes(start_tree, taken.tree),
            agent_commits=kept,
            nested=tuple(taken.nested),
            warnings=(*taken.warnings, *told),
        )

    def sweep_refs(self, workspace: Workspace) -> None:
        """Removes what an agent left among the refs besides its work branch; call it when its commits are kept."""
        run = RunId(workspace.path.parent.parent.name)
        with places.repository_lock(self.state_dir):
            agent_git.sweep(workspace, self.common_dir, self._place(run, workspace.name).admin_trash)

    def tracked(self, folder: str) -> frozenset[str]:
        """The paths below a folder of the user's checkout that git tracks there."""
        answer = Git(self.git_dir, self.root).run("ls-files", "-z", "--", f":(top,literal){folder}")
        return frozenset(os.fsdecode(item) for item in answer.items())

    def remove_workspace(self, run: RunId, name: str) -> None:
        """Removes worktree and bookkeeping of this name, also half-made ones; never follows a link out of it."""
        worktrees.remove(self._place(run, name))

    def workspaces(self) -> list[tuple[RunId, str, Path]]:
        """Every workspace on disk that belongs to this repository, also those of crashed runs."""
        return [(place.run, place.name, place.tree) for place in places.found(self.state_dir, self.common_dir)]

    def forget_run(self, run: RunId) -> None:
        """Removes the run's private git dir and whatever else is left of it here; its workspaces first."""
        for owner, name, _ in self.workspaces():
            if owner == run:
                self.remove_workspace(run, name)
        with self._lock:
            self._private.pop(run, None)
            self._tripwires.pop(run, None)
            self._run = None if self._run == run else self._run
        removal.discard(self.state_dir / run, self.state_dir / "_trash")

    # The parent

    def seal_parent(self, run: RunId) -> None:
        """Remembers hooks, config, attributes, refs, index and files of the parent as they are now."""
        with self._lock:
            wire = Tripwire(run, self.layout, self._refs, self._private_of(run), self._effective)
            wire.arm()
            self._tripwires[run] = wire

    def parent_drift(self, run: RunId) -> ParentDrift:
        """What changed in the parent since it was last sealed or asked, less what the harness did itself."""
        with self._lock:
            if run not in self._tripwires:
                raise NotFound(f"the parent was not sealed for run {run}", hint="call seal_parent first")
            return self._tripwires[run].drift()

    def fast_forward(self, branch: RefName, new: CommitId) -> CommitId | None:
        """Moves the branch, and the checkout that it is checked out in; returns where it was; raises LandingRefused."""
        with self._lock:
            old = land.fast_forward(self.layout, self._refs, branch, new)
            for wire in self._tripwires.values():
                wire.arm()
            return old

    # The record

    def write_record(self, run: RunId, files: Mapping[str, bytes], when: int) -> CommitId:
        """The finished run as a commit under refs/orchestrix/runs/<run>; writing it again replaces it."""
        made = record.compose(self._objects, run, files, when=when, identity=self._effective.identity)
        ref = record_ref(run)
        with self._lock:
            old = self._refs.read(ref)
            if old != made:
                self.move_ref(ref, made, old)
        return made

    def read_record(self, run: RunId) -> dict[str, bytes]:
        """The files of a record; raises NotFound."""
        return record.read(self._objects, self._refs, run)

    def _agent_commits(self, run: RunId, workspace: Workspace) -> tuple[tuple[CommitId, ...], list[str]]:
        """Tips of the agent that are in the object store, and what people should know; refs to nothing are undone."""
        agent_git.disarm(workspace, self.common_dir)
        tips = agent_git.tips(workspace, self._refs)
        stranger = rights.own_objects(workspace)
        told = [agent_git.replaced_link(workspace)]
        if stranger.is_dir() and any(not self._objects.has_commit(tip) for tip in tips):
            told.append(adopt.commits(self._private_of(run), stranger, tips, workspace.start))
        for ref, tip in agent_git.own_refs(workspace, self._refs).items():
            if not self._objects.has_commit(tip):
                self.delete_ref(ref, tip)
        return tuple(tip for tip in tips if self._objects.has_commit(tip)), [said for said in told if said]

    def _place(self, run: RunId, name: str) -> Place:
        return places.place(self.state_dir, self.common_dir, run, name)

    def _private_of(self, run: RunId | None) -> PrivateDir:
        """The run's own git dir; without a run, one that is named by the settings it was made from."""
        with self._lock:
            self._run = run
            if run not in self._private:
                name = Path(run) / "git" if run else Path("_shared") / private.fingerprint(self.layout, self._effective)
                self._private[run] = private.ensure(self.state_dir / name, self.layout, self._effective)
            return self._private[run]

    def _note(self, ref: RefName, value: CommitId | None) -> None:
        for wire in self._tripwires.values():
            wire.own(ref, value)
