"""Refs of the user's repository: read by libgit2, moved only by compare-and-swap."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pygit2
from pygit2.enums import ReferenceType

from harness.errors import EnvironmentProblem, GitFailed, RefMoved, UsageError
from harness.model.ids import CommitId, RefName, RunId
from harness.vcs import locks
from harness.vcs.git import Git
from harness.vcs.libgit2 import translated
from harness.vcs.repo import Layout

# A run refuses a partial clone (`repo.check_supported`); commands that only read need not.
pygit2.settings.set_extensions(["partialclone"])
_ABSENT = "0" * 40
_SYMBOLIC_DEPTH = 5
_LOCKED = ".lock': File exists"
_TRIES = 20  # git waits for a lock, too: a ref that stays locked is given up after half a minute or more
_OWN = ("refs/heads/orchestrix/", "refs/heads/orchestrix-restore/", "refs/orchestrix/")


class Refs:
    """One repository's refs; raises EnvironmentProblem when libgit2 cannot open it."""

    def __init__(self, layout: Layout) -> None:
        try:
            self._repo = pygit2.Repository(str(layout.git_dir))
        except (pygit2.GitError, KeyError, ValueError) as error:
            raise EnvironmentProblem(
                f"the repository at {layout.root} cannot be opened: {error}",
                hint="it may use an extension such as reftable or belong to another user",
            ) from error
        self._repo.set_ident("Orchestrix", "orchestrix@localhost")
        self._common_dir = layout.common_dir
        self._git = Git(layout.common_dir)
        self._checkout = Git(layout.git_dir, layout.root)

    def read(self, ref: str) -> CommitId | None:
        """Where a ref is, through symbolic refs; None when it does not exist."""
        for _ in range(_SYMBOLIC_DEPTH):
            found = self._lookup(ref)
            if found is None:
                return None
            target = found.target
            if not isinstance(target, str):
                return CommitId(str(target))
            ref = target
        return None

    def head_branch(self) -> RefName | None:
        """The branch that HEAD names, also when it has no commit yet; None when HEAD is detached."""
        found = self._lookup("HEAD")
        if found is None or found.type == ReferenceType.DIRECT:
            return None
        return RefName(str(found.target))

    def all(self) -> dict[str, str]:
        """Every ref and what it holds: an id, or the name that a symbolic ref points to.

        libgit2 leaves out what it cannot read: ask `read` before a missing name counts as deleted.
        """
        with translated("listing refs"):
            return {ref.name: str(ref.target) for ref in self._repo.references.iterator()}

    def under(self, prefix: str) -> dict[RefName, CommitId]:
        """Every ref whose name starts so, without a look at the others."""
        found = {name: self.read(name) for name in sorted(self._names_under(prefix))}
        return {RefName(name): at for name, at in found.items() if at is not None}

    def move(self, ref: RefName, new: CommitId, old: CommitId | None) -> None:
        """Compare-and-swap; `old` None means that the ref must not exist; raises RefMoved."""
        if not self._moved_in_process(ref, new, old):
            self._update(ref, old, "--no-deref", "--", ref, new, old or _ABSENT)

    def delete(self, ref: RefName, old: CommitId) -> None:
        """Deletes the ref if it still is at `old`; raises RefMoved."""
        if not self._deleted_in_process(ref, old):
            self._update(ref, old, "--no-deref", "-d", "--", ref, old)

    def resolve(self, revision: str) -> CommitId:
        """The commit that a revision names; raises UsageError, or EnvironmentProblem when there is no commit at all."""
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", revision)
        answer = self._checkout.run(*asked, ok=(0, 1, 128))
        oid = answer.out.decode().strip() if answer.code == 0 else ""
        commit = self._commit_of(oid) if oid else None
        if commit is not None:
            self._must_read(f"{commit}^{{tree}}", revision)
            return commit
        if oid:
            self._must_read(oid, revision)
        elif self.read("HEAD") is None:
            raise EnvironmentProblem("the repository has no commit yet", hint="make a first commit")
        said = f": {answer.last_error}" if answer.err.strip() else ""
        raise UsageError(
            f"{revision!r:.120} names no commit{said}", hint="give a branch, tag or commit id; see `git log --oneline`"
        )

    def _must_read(self, named: str, revision: str) -> None:
        """Raises EnvironmentProblem, with git's reason, when the object is missing or damaged."""
        with suppress(pygit2.GitError, KeyError, ValueError):
            self._repo.revparse_single(named)
            return
        asked = self._checkout.run("cat-file", "-p", named, ok=(0, 1, 128))
        if asked.code:
            raise EnvironmentProblem(
                f"{revision!r:.120} cannot be read: {asked.all_errors}",
                hint="the repository is damaged: run `git fsck`",
            )

    def _moved_in_process(self, ref: RefName, new: CommitId, old: CommitId | None) -> bool:
        """Libgit2 locks and compares as git does, without a process; what it will not do, git does or explains."""
        try:
            if old is None:
                self._repo.create_reference_direct(ref, new, False)  # not over one that exists
            else:
                found = self._lookup(ref)
                if not _is_at(found, old):
                    return False
                found.set_target(new)
        except (pygit2.GitError, ValueError, OSError):
            return False
        self._make_last(ref)
        return True

    def _deleted_in_process(self, ref: RefName, old: CommitId) -> bool:
        try:
            found = self._lookup(ref)
            if not _is_at(found, old):
                return False
            found.delete()
        except (pygit2.GitError, ValueError, OSError):
            return False
        return True

    def _make_last(self, ref: RefName) -> None:
        """On the disk before anybody relies on it, as git's own default has it."""
        with suppress(FileNotFoundError):  # somebody packed it meanwhile
            handle = os.open(f"{self._common_dir}/{ref}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _names_under(self, prefix: str) -> set[str]:
        """Loose ones from their folder, packed ones from their file; what git would not call a ref is no name here."""
        top = f"{self._common_dir}/"
        names = {
            f"{folder}/{file}".removeprefix(top)
            for folder, _, files in os.walk(top + prefix.rpartition("/")[0])
            for file in files
        }
        with suppress(FileNotFoundError):
            packed = (self._common_dir / "packed-refs").read_bytes()
            if os.fsencode(f" {prefix}") in packed:
                lines = os.fsdecode(packed).splitlines()
                names.update(line.partition(" ")[2] for line in lines if f" {prefix}" in line)
        return {name for name in names if name.startswith(prefix)}

    def _commit_of(self, oid: str) -> CommitId | None:
        try:
            return CommitId(str(self._repo[oid].peel(pygit2.Commit).id))
        except (pygit2.GitError, KeyError, ValueError):
            return None

    def _lookup(self, ref: str) -> Any:
        try:
            return self._repo.lookup_reference(ref)
        except (pygit2.GitError, KeyError, ValueError):
            return None

    def _update(self, ref: RefName, old: CommitId | None, *args: str) -> None:
        for tries_left in reversed(range(_TRIES)):
            try:
                self._git.run("update-ref", *args)
            except GitFailed as failed:
                in_the_way = self._hindrance(ref, old, failed)
                if not tries_left:
                    raise (in_the_way or failed) from failed
            else:
                return

    def own_locks(self, run: RunId | None = None) -> list[Path]:
        """Lock files among the harness's own refs, or among those of one run."""
        found = sorted(path for prefix in _OWN for path in (self._common_dir / prefix).rglob("*.lock"))
        return [path for path in found if run is None or path.stem == run or run in path.parent.parts]

    def _hindrance(self, ref: RefName, old: CommitId | None, failed: GitFailed) -> EnvironmentProblem | None:
        """What will go by itself: a lock that a live git holds, the user's gc or pack-refs; None when it is gone.

        Raises what waiting does not mend.
        """
        if failed.details.get("exit_status", 0) < 0:
            self._unlock(ref, failed)
        if failed.details.get("machine"):
            raise failed
        now = self.read(ref)
        if now != old:
            raise RefMoved(
                f"{ref} is at {now or 'nothing'}, not at {old or 'nothing'}",
                hint="somebody else moved it; look, then run `orchestrix resume`",
            ) from failed
        blocking = self._blocking(ref)
        if blocking:
            raise EnvironmentProblem(
                f"{ref} cannot be made: {blocking} is in the way",
                hint=f"rename that branch: git branch -m {blocking.removeprefix('refs/heads/')} <new name>",
            ) from failed
        return self._unlock(ref, failed)

    def _unlock(self, ref: RefName, failed: GitFailed) -> EnvironmentProblem | None:
        """Takes away what a killed git left, and returns what a live one holds; a lock on the user's ref is named."""
        where = self._git.git_dir
        packed = (where / "packed-refs.lock", where / "packed-refs.new")
        single = (where / f"{ref}.lock",)
        found = [files for files in (single, packed) if files[0].exists()]
        if not found and _LOCKED not in failed.message:
            raise failed
        for files in found:
            problem = EnvironmentProblem(
                f"{ref} cannot be moved: {files[0]} is in the way",
                hint="if no git is at work here, remove that file, then resume",
            )
            if files is single and not ref.startswith(_OWN):
                raise problem from failed
            if not locks.remove_abandoned(*files):
                return problem
        return None

    def _blocking(self, ref: RefName) -> str | None:
        """The ref whose name is a directory of this one's, or the other way round."""
        return next((name for name in self.all() if ref.startswith(f"{name}/") or name.startswith(f"{ref}/")), None)


def _is_at(found: Any, commit: CommitId) -> bool:
    return found is not None and str(found.target) == commit  # a symbolic ref's target is a name
