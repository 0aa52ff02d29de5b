"""The snapshot: the files of a workspace as a tree, with a private index over the pristine one.

The agent's config and `.git` file are not consulted; its index and commits only say which ignored files are work. Nested
repositories become plain files, unless `.gitmodules` names them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from pygit2.enums import FileMode

from harness import namespace
from harness.errors import GitFailed
from harness.model import limits
from harness.model.ids import TreeId
from harness.model.late import dataclass
from harness.vcs import strict, submodules, survey, trees
from harness.vcs.git import Answer, Git, many_descriptors, text
from harness.vcs.gitlinks import Gitlinks
from harness.vcs.ignored import Ignored
from harness.vcs.private import PrivateDir
from harness.vcs.strict import Problem, Strict
from harness.vcs.survey import Survey
from harness.vcs.trees import Entry

BOOKKEEPING = (":(exclude,top,literal).orchestrix/local", ":(exclude,top,glob).orchestrix/step-*-result.md")
_WARNINGS = 20
_INVALID = b"invalid path"
_CLOSED = (b"Permission denied", b"could not open directory")


class Untouched(Protocol):
    """Lists the files that are as they were checked out; `attributes` says whether there are any now."""

    def __call__(self, *, attributes: bool) -> list[bytes]: ...


@dataclass(slots=True)
class Taken:
    """A tree in the object store, and what people should know about how it came to be."""

    tree: TreeId
    nested: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Why the tree is not what the agent left: names that git does not take stand in it under others."""
    ignored: list[str] = field(default_factory=list)
    """New files, and folders of them, that ignore rules left out."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Says what of the files is a change to `start`, and what of the changes git refuses elsewhere."""

    strict: Strict
    private: PrivateDir
    start: TreeId
    ignored: Ignored
    untouched: Untouched
    gitlinks: Gitlinks = Gitlinks()

    def problems(self, changed: Mapping[bytes, Entry]) -> list[Problem]:
        return self.strict.problems(self.private, self.start, changed)


def take(
    git: Git, pristine: Path, gitlinks: Sequence[str], prepared: Iterable[str], judge: Judge | None = None
) -> Taken:
    """Writes the tree of the git's work tree.

    `gitlinks` are the submodules of the start point; `prepared` are paths that the harness put there itself. What the
    judge refuses is in the tree under another name.
    Raises GitFailed when no tree can be written.
    """
    with tempfile.TemporaryDirectory(prefix="snapshot-", dir=pristine.parent.parent) as scratch:
        door = Git(git.git_dir, git.work_tree, Path(scratch) / "index", git.objects, git.alternate)
        return _Snapshot(door, pristine, gitlinks, prepared, judge).take()


class _Snapshot:
    def __init__(
        self, git: Git, pristine: Path, gitlinks: Sequence[str], prepared: Iterable[str], judge: Judge | None
    ) -> None:
        assert git.work_tree is not None  # noqa: S101 - narrows the type; `take` always passes one
        assert git.index is not None  # noqa: S101 - as above
        self._git, self._root, self._index = git, Path(namespace.seen(git.work_tree)), git.index
        self._pristine = pristine
        self._judge = judge
        self._known = judge.gitlinks if judge else Gitlinks()
        self._gitlinks = gitlinks
        self._prepared = [f":(exclude,top,literal){path}" for path in prepared]
        self._warnings: list[str] = []
        self._refused: list[str] = []

    def take(self) -> Taken:
        seen = self._look()
        with many_descriptors() if seen.depth > limits.PATH_DEPTH else nullcontext():
            return self._taken(seen)

    def _taken(self, seen: Survey) -> Taken:
        nested = [path for path in seen.nested if path not in self._gitlinks]
        apart = [*nested, *self._gitlinks]
        answer = self._add(apart, seen)
        if any(sign in answer.err for sign in _CLOSED):
            survey.open_doors(self._root)
            answer = self._add(apart, seen)
        self._note_refused(answer)
        plain = [*self._settle_new(self._not_ignored(nested)), *self._settle_gitlinks(seen)]
        self._add_plain(plain, seen.inside)
        self._settle_tracked()
        self._settle_ignored()
        self._refuse(invalid=_INVALID in answer.err)
        for path in plain:
            self._warn(f"{_shown(path)} is a repository of its own: its files are in the snapshot, its history is not")
        tree = TreeId(self._git.run("write-tree").out.decode().strip())
        return Taken(tree, [_shown(path) for path in plain], self._warnings, self._refused)

    def _look(self) -> Survey:
        seen = survey.tree(self._root, self._gitlinks)
        if seen.unreadable:
            survey.open_doors(self._root)
            seen = survey.tree(self._root, self._gitlinks)
        survey.remove_traps(self._root, seen)
        for path in seen.unreadable:
            self._warn(f"{_shown(path):.200} cannot be read: what is below it is not in the snapshot")
        for path in seen.special:
            self._warn(f"{_shown(path)} is no regular file, directory or link: it is not in the snapshot")
        return seen

    def _add(self, left_out: Sequence[str], seen: Survey) -> Answer:
        """Stages everything else on a fresh copy of the pristine index, whose times vouch for unchanged files."""
        shutil.copy2(self._pristine, self._index)
        if seen.special:
            self._update(seen.special, "--force-remove")
        self._hold_untouched(seen)
        excluded = [f":(exclude,top,literal){path}" for path in left_out]
        # Git refuses a pattern that leads through a link.
        bookkeeping = () if (self._root / ".orchestrix").is_symlink() else BOOKKEEPING
        patterns = (":(top)", *bookkeeping, *self._prepared, *excluded)
        return self._git.run(
            "add",
            "--all",
            "--ignore-errors",
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
            stdin=_joined(patterns),
            ok=(0, 1),
        )

    def _hold_untouched(self, seen: Survey) -> None:
        """Git shall not read them again: it would store them as attributes say that may be new, or fail to."""
        untouched = self._judge.untouched(attributes=seen.attributes) if self._judge else []
        if untouched:
            self._update([os.fsdecode(path) for path in untouched], "--assume-unchanged")

    def _not_ignored(self, nested: Sequence[str]) -> list[str]:
        if not nested:
            return []
        ignored = self._ignored(nested)
        return [path for path in nested if path not in ignored]

    def _ignored(self, paths: Sequence[str]) -> set[str]:
        answer = self._git.run("check-ignore", "-z", "--stdin", stdin=_joined(paths), ok=(0, 1))
        return {os.fsdecode(item) for item in answer.items()}

    @cached_property
    def _declared(self) -> dict[str, str]:
        return submodules.declared(self._git, self._root)

    def _settle_new(self, nested: Sequence[str]) -> list[str]:
        """Records repositories that `.gitmodules` names as submodules; returns the others."""
        return [path for path in nested if path not in self._declared or not self._record(path)]

    def _record(self, path: str) -> bool:
        """A submodule at the commit where its repository stands, if others can get that; else its files are kept."""
        head = survey.head_commit(self._root / path / ".git")
        if head is None:
            return False
        said = self._problem(path, head)
        if said:
            self._refused.append(said)
            return False
        self._link(path, head)
        return True

    def _problem(self, path: str, commit: str) -> str | None:
        """Why a submodule must not be recorded at a commit; one that the start point names is as good as it was."""
        entry = self._root / path / ".git"
        if self._known.had(commit):
            return None
        if survey.head_commit(entry) is None:
            said: str | None = f"commit {commit[:12]} cannot be shown to be reachable: it is not checked out"
        else:
            said = submodules.problem(self._git, entry, commit, self._declared.get(path))
        return f"submodule {_shown(path)}: {said}" if said else None

    def _link(self, path: str, commit: str) -> None:
        self._git.run("update-index", "--add", "--replace", "--cacheinfo", f"160000,{commit},{path}")
        self._warn(f"submodule {_shown(path)} is recorded at {commit[:12]}; what is in it is not in the snapshot")

    def _settle_tracked(self) -> None:
        """Takes the gitlinks that the agent tracked where the files say nothing: an empty directory has no commit."""
        if self._known.unread:
            self._warn("the agent's index cannot be read: submodules that are only staged are not in the snapshot")
        for path, commit in self._known.staged.items():
            if commit is None:
                if survey.is_empty(self._root, path):
                    self._update([path], "--force-remove")
            elif self._is_as_begun(path):
                self._take_link(path, commit)
        for path, commit in self._known.committed.items():
            if survey.is_empty(self._root, path):
                self._take_link(path, commit)

    def _take_link(self, path: str, commit: str) -> None:
        """One that must not be merged is refused, and in the kept work all the same if git takes its name."""
        said = self._problem(path, commit)
        if said:
            self._refused.append(said)
        try:
            self._link(path, commit)
        except GitFailed as failed:
            if failed.details.get("machine") or failed.details.get("overtime"):
                raise
            self._refused.append(f"submodule {_shown(path)}: {failed.message}")

    def _is_as_begun(self, path: str) -> bool:
        """Whether the files give no other commit than the start point: no files, or a repository that did not move."""
        if path not in self._known.begun:
            return survey.is_empty(self._root, path) or survey.is_free(self._root, path)
        head = survey.head_commit(self._root / path / ".git")
        return head == self._known.begun[path] if head else survey.is_empty(self._root, path)

    def _settle_gitlinks(self, seen: Survey) -> list[str]:
        """Brings the start point's submodules up to date; returns those that now are plain directories of files."""
        plain = []
        for path in self._gitlinks:
            place = self._root / path
            head = survey.head_commit(place / ".git") if path in seen.repositories else None
            if head is not None:
                if head != self._commit_of(path) and not self._record(path):
                    self._update([path], "--force-remove")
                    plain.append(path)
            elif place.is_symlink() or not place.is_dir():
                self._update([path], "--force-remove")
                if os.path.lexists(place):
                    self._update([path], "--add", "--replace")
            elif any(file.startswith(f"{path}/") for file in seen.inside):
                self._update([path], "--force-remove")
                plain.append(path)
        return plain

    def _commit_of(self, path: str) -> str:
        """The commit of a submodule of the start point."""
        row = self._git.run("ls-files", "--stage", "-z", "--", f":(top,literal){path}").out
        return row.split(b" ")[1].decode() if row else ""

    def _add_plain(self, directories: Sequence[str], inside: Sequence[str]) -> None:
        if not directories:
            return
        listed = self._git.run("ls-files", "-z", "--", *(f":(top,literal){path}" for path in directories)).items()
        tracked = {os.fsdecode(item) for item in listed}
        below = tuple(f"{path}/" for path in directories)
        found = [path for path in inside if path.startswith(below)]
        wanted = tracked | (set(found) - self._ignored(found) if found else set())
        if wanted:
            # What a sparse workspace left out would be removed for not being there.
            self._update(sorted(wanted), "--ignore-skip-worktree-entries", "--add", "--remove", "--replace")

    def _settle_ignored(self) -> None:
        """Adds what is work although rules ignore it, and lists the rest, a folder as one."""
        if self._judge is None:
            return
        work = self._judge.ignored.work
        if work:
            self._update(sorted(map(os.fsdecode, work)), "--add", "--replace")
        listed = self._git.run("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        self._judge.ignored.left = listed.items()

    def _refuse(self, *, invalid: bool) -> None:
        """Brings what git refuses, now or when others check it, under names that any git takes."""
        if self._judge is None:
            return
        staged = self._staged()
        new = self._invalid() if invalid else {}
        problems = self._judge.problems({**staged, **new})
        refused = tuple(problem.path for problem in problems)
        rows = []
        for path, entry in {**staged, **new}.items():
            if path in new or path in refused or path.startswith(tuple(above + b"/" for above in refused)):
                rows += [b"0 %s\t%s\0" % (b"0" * 40, path)] if path in staged else []
                rows.append(b"%o %s\t%s\0" % (trees.mode(entry), trees.oid(entry).encode(), strict.harmless(path)))
        if rows:
            self._git.run("update-index", "-z", "--index-info", stdin=b"".join(rows))
        self._refused += map(str, problems)
        if new and not problems:
            self._refused += [f"{text(path)}: invalidPath: git takes no path with this name" for path in new]

    def _staged(self) -> dict[bytes, Entry]:
        """What differs from the start point by now and has a name that must be looked at."""
        assert self._judge is not None  # noqa: S101 - narrows the type
        fields = iter(self._git.run("diff-index", "--cached", "--raw", "-z", "--no-renames", self._judge.start).items())
        found = {}
        for about, path in zip(fields, fields, strict=True):
            mode, oid, kind = about.split(b" ")[1], about.split(b" ")[3], about.split(b" ")[4]
            if kind != b"D" and any(map(strict.is_doubtful, path.split(b"/"))):
                found[path] = trees.made(int(mode, 8), path.rpartition(b"/")[2], oid.decode())
        return found

    def _invalid(self) -> dict[bytes, Entry]:
        """Files that git would not add for their names alone."""
        found = {}
        for path in self._git.run("ls-files", "--others", "--exclude-standard", "-z").items():
            place = self._root / os.fsdecode(path)
            if any(map(strict.is_doubtful, path.split(b"/"))) and (place.is_symlink() or place.is_file()):
                link = os.fsencode(place.readlink()) if place.is_symlink() else None
                named = ("--stdin",) if link is not None else ("--", path)
                oid = self._git.run("hash-object", "-w", "--no-filters", *named, stdin=link or b"").out.strip()
                mode = FileMode.LINK if link is not None else FileMode.BLOB
                found[path] = trees.made(mode, path.rpartition(b"/")[2], oid.decode())
        return found

    def _update(self, paths: Sequence[str], *options: str) -> None:
        self._git.run("update-index", *options, "-z", "--stdin", stdin=_joined(paths))

    def _note_refused(self, answer: Answer) -> None:
        for line in text(answer.err).splitlines() if answer.code else ():
            if line.startswith(("error:", "fatal:")) and "invalid path" not in line:
                self._warn(f"not in the snapshot: {line.split(':', 1)[1].strip()}")

    def _warn(self, sentence: str) -> None:
        if len(self._warnings) < _WARNINGS:
            self._warnings.append(sentence)


def _joined(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _shown(path: str) -> str:
    return text(os.fsencode(path))
