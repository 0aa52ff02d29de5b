"""The tripwire: what must not change in the parent while agents work, and what is merely reported when it does."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from harness.errors import MACHINE_FAULTS, GitFailed
from harness.model.changes import ParentDrift
from harness.model.ids import RunId
from harness.model.late import dataclass
from harness.vcs.effective import Effective, user_config_dir
from harness.vcs.git import Git, config_variables, text
from harness.vcs.private import PrivateDir
from harness.vcs.refs import Refs
from harness.vcs.repo import Layout

_OWN_FILES = (".orchestrix/local/", ".orchestrix/step-*-result.md")
_OF_A_RUN = re.compile(r"refs/(?:heads/orchestrix|orchestrix/keep|orchestrix/runs)/([^/]+)(?:/|$)")


@dataclass(frozen=True, slots=True)
class Seal:
    """One look at the parent: names and fingerprints."""

    protected: Mapping[str, str]
    refs: dict[str, str]
    head: str
    files: Mapping[str, str]
    index_stat: str = ""
    index: str = ""


@dataclass(slots=True)
class Tripwire:
    """Looks at one repository on behalf of one run."""

    run: RunId
    layout: Layout
    refs: Refs
    private: PrivateDir
    effective: Effective
    seal: Seal | None = field(default=None)

    def arm(self) -> None:
        """Remembers everything as it is now."""
        self.seal = self._look()

    def drift(self) -> ParentDrift:
        """What changed since the last look; the new look is remembered."""
        before = self.seal
        self.seal = now = self._look()
        if before is None:
            return ParentDrift()
        guarded = [name for name in before.refs.keys() | now.refs.keys() if self._guarded(name)]
        watched = [name for name in before.refs.keys() | now.refs.keys() if self._watched(name)]
        tampered = [
            *_differences(before.protected, now.protected),
            *_differences(_only(before.refs, guarded), _only(now.refs, guarded), moved="moved"),
        ]
        changed = [
            *_differences(_only(before.refs, watched), _only(now.refs, watched), moved="moved"),
            *(["HEAD: moved"] if before.head != now.head else []),
            *(["index: changed"] if before.index != now.index else []),
            *(
                f"{name}: changed"
                for name in sorted(before.files.keys() | now.files.keys())
                if before.files.get(name) != now.files.get(name)
            ),
        ]
        return ParentDrift(tuple(tampered), tuple(changed))

    def own(self, ref: str, value: str | None) -> None:
        """Notes a ref that the harness itself moved or, with None, deleted."""
        if self.seal is not None:
            if value is None:
                self.seal.refs.pop(ref, None)
            else:
                self.seal.refs[ref] = value

    def _guarded(self, ref: str) -> bool:
        """Refs of this run, which the harness alone moves; another run's refs are that run's."""
        if ref.startswith("refs/replace/"):
            return True
        owner = _OF_A_RUN.match(ref)
        if owner:
            return owner[1] == self.run
        return ref.startswith("refs/orchestrix/")

    def _watched(self, ref: str) -> bool:
        return not ref.startswith(("refs/replace/", "refs/orchestrix/", "refs/heads/orchestrix/"))

    def _look(self) -> Seal:
        index_stat = _stat(self.layout.index)
        known = self.seal
        same = known is not None and known.index_stat == index_stat
        head = _digest(self.layout.git_dir / "HEAD")
        return Seal(
            protected=dict(_protected(self.layout, self.effective)),
            refs=self._refs(),
            head=head,
            files=self._dirty(),
            index_stat=index_stat,
            index=known.index if known is not None and same else self._index(),
        )

    def _refs(self) -> dict[str, str]:
        """Every ref; one that is missing since the last look is asked for by name, because a listing may skip it."""
        found = self.refs.all()
        for name in (self.seal.refs.keys() if self.seal else set()) - found.keys():
            at = self.refs.read(name)
            if at is not None:
                found[name] = at
        return found

    def _git(self) -> Git:
        return self.private.over_checkout(self.layout)

    def _index(self) -> str:
        """What is staged; a refresh of cached times by the user's own `git status` is no change."""
        try:
            return hashlib.sha256(self._git().run("ls-files", "--stage", "-z").out).hexdigest()
        except GitFailed as failed:
            return _complaint(failed)

    def _dirty(self) -> dict[str, str]:
        """Changed and untracked files with their times and sizes; ignored files are not watched."""
        try:
            listed = self._git().run("ls-files", "--modified", "--others", "--exclude-standard", "-z").items()
        except GitFailed as failed:
            return {"working tree": _complaint(failed)}
        return {text(path): _stat(self.layout.root / os.fsdecode(path)) for path in listed if not _own(path)}


def _complaint(failed: GitFailed) -> str:
    """What git says of the parent is part of the look; a machine at fault is nobody's change and stops the look."""
    if failed.details.get("machine"):
        raise failed
    return failed.message


def _own(path: bytes) -> bool:
    name = os.fsdecode(path)
    return name.startswith(_OWN_FILES[0]) or fnmatch.fnmatchcase(name, _OWN_FILES[1])


def _protected(layout: Layout, effective: Effective) -> Iterable[tuple[str, str]]:
    common = layout.common_dir
    named = {
        "config": common / "config",
        "config.worktree": common / "config.worktree",
        "info/attributes": common / "info" / "attributes",
        "info/grafts": common / "info" / "grafts",
        "objects/info/alternates": common / "objects" / "info" / "alternates",
    }
    if layout.git_dir != common:
        named["config.worktree of this checkout"] = layout.git_dir / "config.worktree"
    for path in (*_user_config(), *effective.origins):
        if path != common / "config":
            named[str(path)] = path
    for name, path in named.items():
        yield name, _digest(path)
    yield from _hooks("hooks", common / "hooks")
    elsewhere = effective.hooks_path
    if elsewhere is not None and elsewhere.is_absolute() and not elsewhere.is_relative_to(layout.root):
        yield from _hooks(str(elsewhere), elsewhere)


def _user_config() -> tuple[Path, ...]:
    chosen = config_variables().get("GIT_CONFIG_GLOBAL")
    return (Path(chosen),) if chosen else (Path.home() / ".gitconfig", user_config_dir() / "config")


def _hooks(label: str, directory: Path) -> Iterable[tuple[str, str]]:
    yield label, str(directory.readlink()) if directory.is_symlink() else "directory"
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        yield f"{label}/{text(os.fsencode(path.name))}", _digest(path)


def _digest(path: Path) -> str:
    """Mode and content; empty for what does not exist."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return f"link to {path.readlink()}, {_digest(path.resolve())}"
        if not stat.S_ISREG(status.st_mode):
            return f"{status.st_mode:o}"
        return f"{status.st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    except FileNotFoundError:
        return ""
    except OSError as error:
        if error.errno in MACHINE_FAULTS:
            raise
        return f"unreadable: {error.strerror}"


def _stat(path: Path) -> str:
    try:
        status = path.lstat()
    except OSError:
        return ""
    return f"{status.st_mode} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def _only(values: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    return {name: values[name] for name in names if name in values}


def _differences(before: Mapping[str, str], now: Mapping[str, str], moved: str = "changed") -> list[str]:
    said = []
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name, ""), now.get(name, "")
        if old != new:
            said.append(f"{name}: {'added' if not old else 'removed' if not new else moved}")
    return said
