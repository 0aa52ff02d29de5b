"""One repository behind the `Vcs` port: the parts of this layer put together, safe to call from many threads."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Self

from harness import namespace
from harness.errors import MACHINE_FAULTS, EnvironmentProblem, GitFailed, NotFound, SnapshotFailed, UsageError
from harness.model import duration, limits
from harness.model.changes import Change, Edit, Merge, ParentDrift, Snapshot, Workspace, WorkspaceKind
from harness.model.ids import CommitId, RefName, RunId, TreeId, record_ref
from harness.ports import AgentRights
from harness.vcs import (
    adopt,
    agent_git,
    edits,
    effective,
    gitlinks,
    kinds,
    land,
    layered,
    locks,
    overlay,
    places,
    prepare,
    private,
    record,
    removal,
    repo,
    snapshot,
    step_git,
)
from harness.vcs import workspace as worktrees
from harness.vcs.background import Background
from harness.vcs.checkout_move import IsOurs, Move
from harness.vcs.checkout_pool import CheckoutPool
from harness.vcs.checkout_snapshot import CheckoutSnapshot
from harness.vcs.disk import DiskSpace
from harness.vcs.effective import Effective
from harness.vcs.git import Git, within
from harness.vcs.ignored import Ignored, Search
from harness.vcs.merge import Merger
from harness.vcs.objects import Objects
from harness.vcs.places import Place
from harness.vcs.private import PrivateDir
from harness.vcs.refs import Refs
from harness.vcs.snapshot import Judge, Taken
from harness.vcs.sparse import Area, Sparse
from harness.vcs.special_paths import SpecialPaths
from harness.vcs.step_git import StepGit
from harness.vcs.strict import Strict
from harness.vcs.tamper import Tripwire
from harness.vcs.templates import Templates
from harness.vcs.unconverted import Unconverted

_REFUSED = 10


class Repository:
    """Implements `harness.ports.Vcs` with git worktrees, private git dirs and compare-and-swap."""

    workspace_kind: WorkspaceKind = kinds.CHECKOUT
    git_ms = limits.GIT_MS
    """Time for one snapshot, one import of an agent's commits, or one merge."""

    def __init__(self, root: Path, state_home: Path) -> None:
        self.layout = repo.discover(root)
        self.state_dir = repo.state_dir(state_home, self.layout)
        self._refs = Refs(self.layout)
        self._objects = Objects(self.layout.objects)
        self._special_paths = SpecialPaths(self._objects)
        self._layered = layered.Layered(self._objects, self._special_paths)
        self._compared = CheckoutSnapshot(self._objects, self._special_paths)
        self._sparse = Sparse(self._objects, self._special_paths)
        self._unconverted = Unconverted(self._objects, self._special_paths)
        self._gitlinks = gitlinks.Search(self._objects, self._special_paths)
        self._strict = Strict(self._objects)
        self._merger = Merger(self._objects, self._special_paths)
        self._background = Background()
        self._templates = Templates(
            self.state_dir / "_templates", self._objects, self._special_paths, self._background.do
        )
        self._pool = CheckoutPool(self._special_paths)
        self._room = DiskSpace(self.state_dir)
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

    @cached_property
    def _step_git(self) -> StepGit:
        return StepGit(self.layout, self._effective)

    def check_supported(self) -> None:
        """Raises EnvironmentProblem for a repository that a run could only fail on; call it before there is a run."""
        repo.check_supported(self.layout, self._effective.values)

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

    def diff_lines(self, old: CommitId, new: CommitId) -> int:
        """How many lines were added and removed; a binary file counts as one."""
        listed = Git(self.common_dir).run("diff-tree", "-r", "-z", "--no-renames", "--numstat", old, new).items()
        counts = [row.split(b"\t", 2)[:2] for row in listed]
        return sum(1 if added == b"-" else int(added) + int(removed) for added, removed in counts)

    def paths(self, commit: CommitId) -> tuple[str, ...]:
        """Every path in the tree of a commit, sorted."""
        return self._objects.paths(commit)

    def content(self, commit: CommitId, path: str) -> bytes | None:
        """A regular file of a commit; None where there is none, or one too large to be read by a person."""
        return self._objects.content(commit, path)

    def merge(self, ours: CommitId, theirs: CommitId, base: CommitId) -> Merge:
        """The three-way merge that `git merge` would make with this base, attributes included; touches no checkout.

        Raises GitFailed; its detail `content` says that the three trees, or their size, are the cause.
        """
        own = self._private_of(self._run)
        try:
            with within(self.git_ms):
                return self._merger.three_way(own, ours=ours, theirs=theirs, base=base)
        except GitFailed as failed:
            if failed.details.get("machine") or not (failed.details.get("overtime") or _works(own)):
                raise
            raise GitFailed(failed.message, hint=failed.hint, **{**failed.details, "content": True}) from failed

    def with_file(self, tree: TreeId, path: str, content: bytes) -> TreeId:
        """The tree with one regular file added or replaced."""
        return self._objects.with_file(tree, path, content)

    def edits(self, old: str, new: str) -> list[Edit]:
        """Every path that differs between two trees, exact to the byte; raises UsageError for a submodule."""
        return edits.between(Git(self.common_dir), old, new)

    def blob(self, oid: str) -> bytes:
        return self._objects.blob(oid)

    # Workspaces

    def open_workspace(
        self, run: RunId, name: str, start: CommitId, branch: RefName | None, only: Sequence[str] | None = None
    ) -> Workspace:
        """A new worktree at `start`, on `branch` (created, or moved here) or detached; left-overs are removed first.

        `only` makes it sparse: globs of what it holds besides the files at the top level.
        """
        place = self._place(run, name)
        if worktrees.is_left(place):
            self._background.settle()
            worktrees.remove(place)
            if removal.stuck(place.tree):
                raise EnvironmentProblem(
                    f"{place.tree} is in the way and cannot be removed", hint=removal.command(place.tree)
                )
        if branch is not None:
            with self._lock:
                old = self._refs.read(branch)
                if old != start:
                    self.move_ref(branch, start, old)
        own, tree = self._private_of(run), self.tree_of(start)
        if only is not None:
            some = partial(self._sparse.fill, private=own, tree=tree, only=only)
            return worktrees.create(place, worktrees.Card(start, branch, only=tuple(only)), some, self._step_git)
        if self.workspace_kind.name != "overlay":
            fill = partial(self._pool.check_out, private=own, tree=tree)
            return worktrees.create(place, worktrees.Card(start, branch), fill, self._step_git)
        template = self._templates.nearest(own, tree, place.tree)
        layers = partial(layered.fill, private=own, template=template, tree=tree)
        card = worktrees.Card(start, branch, template=template.tree)
        return worktrees.create(place, card, layers, self._step_git)

    def begin(self, start: CommitId) -> None:
        """Starts with what a run at `start` will need first, before it is known whether there will be one; does not wait.

        For a process with one thread, after `choose_workspaces`; a run takes it over with `warm`.
        """
        if self.workspace_kind.name == "overlay":
            self._templates.begin(self._private_of(None), self.tree_of(start))

    def warm(self, run: RunId, start: CommitId) -> None:
        """Begins with what the first workspace at `start` will need, and returns at once; harmless where it fails.

        Called after `choose_workspaces`: it starts a thread.
        """
        if self.workspace_kind.name == "overlay":
            self._background.do(self._templates.warm, self._private_of(run), self.tree_of(start))

    def sparse_files(self, start: CommitId, only: Sequence[str]) -> int:
        """How many files a sparse workspace would hold."""
        return sum(1 for _ in Area(only).of(self._objects, self.tree_of(start)))

    def choose_workspaces(self, mode: kinds.Mode, against: str = "") -> WorkspaceKind:
        """How workspaces are made from now on; `against` says why an overlay would not be right here, nor a checkout used again.

        Raises EnvironmentProblem when overlays were asked for and do not work.
        """
        self.workspace_kind = kinds.choose(mode, self.state_dir, against)
        self._pool.allowed = self.workspace_kind.name == "checkout" and not against
        self._room.look()
        return self.workspace_kind

    def prepare(self, run: RunId, name: str, copy: Sequence[str], link: Sequence[str]) -> None:
        """Brings `.worktreeinclude`, copy patterns and links from the user's checkout into a fresh workspace."""
        place = self._place(run, name)
        if not place.card.is_file():
            raise NotFound(f"run {run} has no workspace {name}", hint="open it first")
        if not prepare.is_wanted(self.layout, copy, link):
            return
        own, card = self._private_of(run), worktrees.read_card(place)

        def has(path: str) -> bool:
            return card is not None and card.only is not None and self._sparse.has(self.tree_of(card.start), path)

        files = Path(namespace.seen(place.tree))
        brought = prepare.fill(self.layout, own, files, copy, link, has=has) if card is not None else []
        if card is not None and brought:
            left = prepare.untracked(own.git(place.tree, place.index), files)
            worktrees.write_card(place, dataclasses.replace(card, prepared=left, brought=tuple(brought)))

    def agent_rights(self, workspace: Workspace) -> AgentRights:
        """What git must be able to write when the agent commits inside a sandbox."""
        return step_git.rights(workspace, self.common_dir)

    def find_workspace(self, run: RunId, name: str) -> Workspace | None:
        """A workspace that an earlier coordinator made, if it is whole."""
        place = self._place(run, name)
        found = worktrees.find(place)
        if found is None:
            return None
        workspace, card = found
        if card.template is not None and not overlay.is_mounted(place):
            overlay.mount(place, self._templates.having(self._private_of(run), card.template, place.tree).files)
        return workspace

    def workspace_path(self, run: RunId, name: str) -> Path:
        """Where `open_workspace` will make it."""
        return self._place(run, name).tree

    def snapshot(self, workspace: Workspace, message: str, when: int) -> Snapshot:
        """The files as they are, as a commit on the workspace's start point.

        What git cannot take, or must not be merged, is `refused` and kept in another form. Raises SnapshotFailed, with
        the files set aside, when not even that works, or not in time.
        """
        run = RunId(workspace.path.parent.parent.name)
        start_tree = self.tree_of(workspace.start)
        place = self._place(run, workspace.name)
        try:
            with within(self.git_ms):
                kept, told = self._agent_commits(run, workspace)
                taken = self._with_work(place, workspace, start_tree, kept)
        except GitFailed as failed:
            raise self._failed(place, failed) from failed
        except OSError as error:
            if error.errno in MACHINE_FAULTS:
                raise
            raise self._failed(place, GitFailed(f"{error.filename}: {error.strerror}")) from error
        made = self.commit(taken.tree, (workspace.start,), message, when)
        return Snapshot(
            commit=made,
            tree=taken.tree,
            changes=self._objects.changes(start_tree, taken.tree),
            agent_commits=kept,
            nested=tuple(taken.nested),
            warnings=(*taken.warnings, *told),
            refused="; ".join(taken.refused[:_REFUSED]),
            ignored=tuple(taken.ignored[: limits.IGNORED_NAMES]),
            ignored_total=len(taken.ignored),
        )

    def _with_work(self, place: Place, workspace: Workspace, start: TreeId, tips: Sequence[CommitId]) -> Taken:
        """With what is work although ignore rules name it; what else they left out is listed."""
        own, ignored = self._private_of(place.run), Ignored()
        untouched = partial(self._unconverted.untouched, own, place, start)
        index = workspace.admin / "index"
        tracked = self._gitlinks.tracked(start, place.index, index, tips)
        judge = Judge(self._strict, own, start, ignored, untouched, tracked)
        taken = self._taken(place, workspace, judge)
        files = Path(namespace.seen(place.tree))
        work = Search(self._objects, files, start, taken.tree, ignored.left).work(index, tips)
        if work:
            ignored = Ignored(work)
            taken = self._taken(place, workspace, dataclasses.replace(judge, ignored=ignored))
        card = worktrees.read_card(place)
        brought = frozenset(map(os.fsencode, card.brought)) if card else ()
        taken.ignored = Search(self._objects, files, start, taken.tree, ignored.left).shown(brought)
        return taken

    def _taken(self, place: Place, workspace: Workspace, judge: Judge) -> Taken:
        """By the rules of the attributes; where git fails with those, as it is: then the step answers for it."""
        try:
            taken = self._take(place, workspace, judge)
            taken.refused += map(str, self._strict.beyond_limits(judge.start, taken.tree))
        except GitFailed as failed:
            if failed.details.get("machine") or failed.details.get("overtime"):
                raise
            raw = dataclasses.replace(judge, private=judge.private.unconverting())
            taken = self._take(place, workspace, raw, by_git=True)
            taken.refused.append(failed.message)
        return taken

    def _failed(self, place: Place, failed: GitFailed) -> Exception:
        """The step's failure, with its files set aside; the machine's own where nothing else can be written either."""
        overtime = bool(failed.details.get("overtime"))
        if failed.details.get("machine") or not (overtime or _works(self._private_of(place.run))):
            return failed
        kept = worktrees.set_aside(place, self.state_dir / "_kept")
        why = f"it took longer than {duration.text(self.git_ms)}" if overtime else failed.message
        return SnapshotFailed(
            f"no snapshot can be taken of workspace {place.name}: {why}; its files are in {kept}",
            hint="raise the setting `git_timeout`, or leave less" if overtime else "look at them there",
            kept=str(kept),
            overtime=overtime,
        )

    def lay(
        self, workspace: Workspace, start: str, made: Sequence[Edit], wanted: TreeId, content: Callable[[str], bytes]
    ) -> None:
        """Does recorded edits again in a fresh workspace; `content` gives the bytes of a blob.

        Raises UsageError when the workspace does not begin with the tree `start`, or would not end with `wanted`.
        """
        if self.tree_of(workspace.start) != start:
            raise UsageError(f"it began with tree {start[:12]}, this step begins with another one")
        own = self._private_of(RunId(workspace.path.parent.parent.name))
        for edit in made:
            if edit.blob and self._objects.new_blob(content(edit.blob)) != edit.blob:
                raise UsageError(f"what it holds as blob {edit.blob[:12]} is something else")
        edits.lay(own.git(workspace.path), workspace.private_index, start, made, wanted)
        left = self.snapshot(workspace, "Replayed", 0).tree
        if left != wanted:
            differing = ", ".join(change.path for change in self._objects.changes(wanted, left)[:10])
            raise UsageError(f"what stood in the workspace before it differs: {differing}")

    def tracked(self, folder: str) -> frozenset[str]:
        """The paths below a folder of the user's checkout that git tracks there."""
        if not repo.may_track(self.layout, folder):
            return frozenset()
        answer = Git(self.git_dir, self.root).run("ls-files", "-z", "--", f":(top,literal){folder}")
        return frozenset(os.fsdecode(item) for item in answer.items())

    def remove_workspace(self, run: RunId, name: str) -> None:
        """Removes worktree and bookkeeping of this name, also half-made ones; never follows a link out of it."""
        self._background.settle()
        place = self._place(run, name)
        worktrees.remove(place)
        self._templates.release(place.tree)

    def retire_workspace(self, run: RunId, name: str) -> None:
        """It is no workspace any more when this returns; its files go in the background, at the latest with the run's."""
        place = self._place(run, name)
        place.card.unlink(missing_ok=True)
        self._background.do(self._retire, place)

    def workspaces(self) -> list[tuple[RunId, str, Path]]:
        """Every workspace on disk that belongs to this repository, also those of crashed runs."""
        self._background.settle()
        return [(place.run, place.name, place.tree) for place in places.found(self.state_dir, self.common_dir)]

    def forget_run(self, run: RunId) -> None:
        """Removes the run's private git dir and whatever else is left of it here; its workspaces first."""
        self._background.settle()
        for place in places.found(self.state_dir, self.common_dir):
            if place.run == run:
                worktrees.retire(place)
                self._templates.release(place.tree)
        self._merger.close()
        self._pool.drop(self.state_dir / run)
        with self._lock:
            self._private.pop(run, None)
            self._tripwires.pop(run, None)
            self._run = None if self._run == run else self._run
        left = places.half_made(self.state_dir, self.common_dir, run)
        trash, of_git = self.state_dir / "_trash", places.git_trash(self.state_dir, self.common_dir)
        removal.put(self.state_dir / run, *left, trash=trash, elsewhere=of_git)
        removal.empty(trash)
        self._templates.evict()

    def stuck(self) -> list[tuple[Path, Path]]:
        """Files of workspaces that are gone, but could not be removed, and the trash each is in; tries once more."""
        of_git = places.git_trash(self.state_dir, self.common_dir)
        trashes = (self.state_dir / "_trash", of_git, self.state_dir / "_templates" / "trash")
        for trash in trashes:
            removal.empty(trash)
        return [(path, trash) for trash in trashes for path in removal.stuck(trash)]

    def own_locks(self) -> list[Path]:
        """Lock files among the harness's own refs; one that stays was left by a git that was killed."""
        return self._refs.own_locks()

    def unlock_run(self, run: RunId) -> None:
        """Removes the locks that a killed coordinator of this run left among its refs."""
        for lock in self._refs.own_locks(run):
            self.unlock(lock)

    def unlock(self, lock: Path) -> bool:
        """Removes a lock file that nobody uses any more; False while somebody does."""
        return locks.remove_abandoned(lock)

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

    def check_landing(self, branch: RefName, new: CommitId) -> CommitId | None:
        """Where the branch is; raises LandingRefused when it cannot be moved forward to `new`. Files are not looked at."""
        return land.check(self.layout, self._refs, branch, new)

    def fast_forward(
        self, branch: RefName, new: CommitId, run: str = "", is_ours: IsOurs = land.never_ours
    ) -> CommitId | None:
        """Moves the branch, and the checkout that it is checked out in; returns where it was; raises LandingRefused."""
        wanted = Move(branch, "", new, run, f"orchestrix land {run}".rstrip())
        with self._lock:
            old = land.fast_forward(self.layout, self._refs, wanted, is_ours)
            self._rearm()
            return old

    def take_back(self, branch: RefName, now: CommitId, to: CommitId | None, run: str) -> None:
        """Moves the branch back from `now`, with its checkout; without `to` the branch goes. Raises LandingRefused."""
        with self._lock:
            wanted = Move(branch, now, to or "", run, f"orchestrix undo {run}", "undo")
            land.take_back(self.layout, self._refs, wanted)
            self._rearm()

    def unfinished_landings(self) -> list[tuple[Path, Move]]:
        """Checkouts whose landing was interrupted, or is going on now, and what it was."""
        return [(spot.root, left) for spot, left in land.remains(self.layout)]

    def settle_landings(self) -> list[Move]:
        """Finishes interrupted landings whose branch had moved, and takes the others back."""
        with self._lock:
            settled = land.settle(self.layout)
            self._rearm()
            return settled

    def stat(self, old: CommitId, new: CommitId) -> str:
        """What differs, for people: one line for each file, and a sum."""
        return (
            Git(self.common_dir)
            .run("diff", "--stat=80", "--no-ext-diff", "--no-color", old, new, "--")
            .out.decode("utf-8", "replace")
        )

    def _rearm(self) -> None:
        for wire in self._tripwires.values():
            wire.arm()

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

    def _take(self, place: Place, workspace: Workspace, judge: Judge, *, by_git: bool = False) -> Taken:
        """From what changed, where that can be told exactly; else by git over the whole workspace."""
        card = worktrees.read_card(place)
        if card is not None and card.template is not None and not overlay.is_mounted(place):
            raise EnvironmentProblem(f"workspace {place.name} is not mounted", hint="resume the run")
        left_out = prepare.untouched(Path(namespace.seen(workspace.path)), card.prepared) if card else ()
        own, start, ignored, tree = judge.private, judge.start, judge.ignored, None
        if (by_git or judge.gitlinks.differ) and (card is None or card.only is None):
            pass
        elif card is not None and card.template is not None:
            tree = self._layered.tree(place, own, (card.template, start), left_out, ignored)
        elif card is not None and card.only is not None:
            return self._sparse.take(own.git(workspace.path), place, card.only, left_out, judge)
        else:
            tree = self._compared.tree(place, own, start, left_out, ignored)
        if tree is not None:
            return Taken(tree)
        begun = [os.fsdecode(path) for path in self._special_paths.of(start).gitlinks]
        return snapshot.take(own.git(workspace.path), workspace.private_index, begun, left_out, judge)

    def _retire(self, place: Place) -> None:
        """What a step wrote may stay in the trash for a while; a whole checkout goes now, unless it is used again."""
        kept = self._pool.keep(place)
        overlaid = worktrees.retire(place)
        self._templates.release(place.tree)
        if self._room.is_low():
            removal.put(*self._pool.drop(place.run_dir), trash=place.trash)
        elif overlaid or kept:
            return
        removal.empty(place.trash)
        self._room.look()

    def _agent_commits(self, run: RunId, workspace: Workspace) -> tuple[tuple[CommitId, ...], list[str]]:
        """Commits of the agent that are in the object store now, and what people should know."""
        place, objects = self._place(run, workspace.name), step_git.own_objects(workspace)
        agent_git.clear_branch(workspace, self.common_dir)
        told = [agent_git.replaced_link(workspace), agent_git.disarm(workspace, self.layout.objects)]
        tips = agent_git.tips(workspace, place.refs)
        if place.entry.is_dir() and workspace.branch is not None:
            # An earlier version let the agent commit on the user's side.
            at = self._refs.read(workspace.branch)
            tips += () if at in (None, workspace.start) else (at,)
        if told[1] is None and any(self._objects.commit_at(tip) is None for tip in tips):
            told += adopt.commits(self._private_of(run), objects, tips, workspace.start)
        kept = dict.fromkeys(map(self._objects.commit_at, tips))
        return tuple(commit for commit in kept if commit), [said for said in told if said]

    def _place(self, run: RunId, name: str) -> Place:
        return places.place(self.state_dir, self.common_dir, run, name)

    def _private_of(self, run: RunId | None) -> PrivateDir:
        """The run's own git dir; without a run, one that is named by the settings it was made from."""
        with self._lock:
            self._run = run
            if run not in self._private:
                name = Path(run) / "git" if run else Path("_shared") / private.fingerprint(self.layout, self._effective)
                places.make_roomy(self.state_dir)
                self._private[run] = private.ensure(self.state_dir / name, self.layout, self._effective)
            return self._private[run]

    def _note(self, ref: RefName, value: CommitId | None) -> None:
        for wire in self._tripwires.values():
            wire.own(ref, value)


def _works(private: PrivateDir) -> bool:
    """Whether git can write objects and files here at all: then what it refused is to blame."""
    try:
        with tempfile.TemporaryDirectory(prefix="probe-", dir=private.path.parent) as scratch:
            door = private.git(Path(scratch), Path(scratch) / "index")
            (Path(scratch) / "file").write_bytes(b"")
            door.run("add", "file")
            door.run("write-tree")
    except (GitFailed, OSError):
        return False
    return True
