"""Moves one checkout (files, branch and index) from one commit to another: whole or not at all, also across kill -9.

1. A folder in the git dir says which branch goes from where to where. The git dir is flocked by this process and its git.
2. `index.lock` is taken, so that no git of the user's writes the index meanwhile.
3. Git writes the files, with a copy of the index that lies in the folder.
4. The branch moves by compare-and-swap. Until then the move is taken back after a death, from then on it is finished.
5. The copy becomes the index; lock and folder go.

After a death the folder is still there, and every file is the old one, the new one, the beginning of one of them, or missing.
Anything else is the user's and is left as it is.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from harness.errors import Busy, GitFailed, LandingRefused, OrchestrixError
from harness.model.ids import CommitId, RefName
from harness.model.late import dataclass
from harness.vcs import locks
from harness.vcs.git import Git, text

FOLDER = "orchestrix-landing"
_PATIENCE_S = 5.0
_PAUSE_S = 0.05
_SHOWN = 10
_GITLINK, _LINK, _ABSENT = "160000", "120000", "000000"

Entry = tuple[str, str]  # mode and blob
IsOurs = Callable[[str, bytes], bool]
Verb = Literal["land", "undo"]
_NOUN = {"land": "landing", "undo": "undo"}
# A commit would come after the landing, and then `undo` refuses for good.
_MAKE_WAY = {
    "land": "commit, move or stash these files, then land again",
    "undo": "stash these files (move untracked ones away), then undo again; do not commit them, that rules undo out",
}
_UNSTAGE = {"land": "commit or unstage", "undo": "unstage"}


@dataclass(frozen=True, slots=True)
class Checkout:
    """A directory of files and the git dir with its HEAD and index."""

    root: Path
    git_dir: Path
    common_dir: Path

    @property
    def folder(self) -> Path:
        return self.git_dir / FOLDER

    @property
    def door(self) -> Git:
        """Git with the user's own filters, on the copy of the index."""
        return Git(self.git_dir, self.root, index=self.folder / "index", user_config=True)


@dataclass(frozen=True, slots=True)
class Move:
    """What is announced before anything changes; `run` says whose log tells of it, `verb` which command asked for it."""

    branch: str
    old: str
    new: str
    run: str = ""
    message: str = "orchestrix: move"
    verb: Verb = "land"


def unfinished(spot: Checkout) -> Move | None:
    """The move that a process left when it died here, or that one is making just now."""
    try:
        return Move(**json.loads((spot.folder / "move.json").read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def move(spot: Checkout, wanted: Move, is_ours: IsOurs) -> None:
    """Moves files, branch and index; raises LandingRefused, and then nothing has changed."""
    with _alone(spot) as held:
        _settle(spot, held)
        _announce(spot, wanted)
        try:
            _lock_index(spot, wanted)
            _judge(spot, wanted, is_ours)
        except BaseException:
            _clear(spot)
            raise
        _act(spot, wanted, held)


def settle(spot: Checkout) -> Move | None:
    """Finishes what a dead process began here if the branch had moved, else takes it back; None where nothing is left."""
    if not spot.folder.exists():
        return None
    with _alone(spot) as held:
        return _settle(spot, held)


def _act(spot: Checkout, wanted: Move, held: int) -> None:
    try:
        spot.door.run("read-tree", "-m", "-u", wanted.old, wanted.new, keeping=held)
        _swap(spot, wanted)
    except OrchestrixError as failed:
        if failed.details.get("exit_status", 0) < 0:
            _free_refs(spot, wanted)
        if _tip(spot, wanted.branch) == wanted.new:
            _publish(spot)
            return
        # Where the disk is the cause this may fail too; the folder then says what is to be done.
        _converge(spot, wanted, held, back=True)
        if isinstance(failed, GitFailed) and failed.details.get("machine"):
            raise
        raise LandingRefused(
            f"{RefName(wanted.branch).short} was not moved: {failed.message}",
            hint=f"look at it, then {wanted.verb} again",
            branch=wanted.branch,
        ) from failed
    _publish(spot)


def _swap(spot: Checkout, wanted: Move) -> None:
    spot.door.run("update-ref", "-m", wanted.message, "--no-deref", wanted.branch, wanted.new, wanted.old)


def _settle(spot: Checkout, held: int) -> Move | None:
    left = unfinished(spot)
    if left is None:
        _clear(spot)
        return None
    _free_refs(spot, left)
    tip = _tip(spot, left.branch)
    if tip in (left.old, left.new) and _head(spot) == left.branch:
        _lock_index(spot, left)
        _converge(spot, left, held, back=tip == left.old)
    else:
        _clear(spot)  # the user went on without us: these are the user's files now
    return left


def _free_refs(spot: Checkout, left: Move) -> None:
    """Removes the locks of a git of ours that was killed while it moved the branch."""
    for lock in (spot.common_dir / f"{left.branch}.lock", spot.git_dir / "HEAD.lock"):
        if lock.exists() and not locks.remove_abandoned(lock):
            raise Busy(f"{lock} is in use", hint="wait for the git that is at work here")


def _converge(spot: Checkout, left: Move, held: int, *, back: bool) -> None:
    """Finishes the move, or takes what it has touched back; what the user changed since stays."""
    old, new = (left.new, left.old) if back else (left.old, left.new)
    blocked = _Comparison(spot, old, new).lenient()
    if blocked:
        raise LandingRefused(
            f"an interrupted {_NOUN[left.verb]} cannot be settled: {_listed(blocked)} in {spot.root} is staged",
            hint=f"{_UNSTAGE[left.verb]} it, then {left.verb} again",
            paths=blocked,
        )
    spot.door.run("read-tree", "-m", "-u", old, new, keeping=held)
    _publish(spot)


def _publish(spot: Checkout) -> None:
    (spot.folder / "index").replace(spot.git_dir / "index")
    _clear(spot)


@contextmanager
def _alone(spot: Checkout) -> Iterator[int]:
    """One move at a time; a git that outlived its dead parent counts, because it has inherited the descriptor."""
    handle = os.open(spot.git_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as taken:
                if time.monotonic() > until:
                    raise Busy(f"another landing is at work in {spot.root}", hint="wait for it") from taken
                time.sleep(_PAUSE_S)
        yield handle
    finally:
        os.close(handle)


def _announce(spot: Checkout, wanted: Move) -> None:
    shutil.rmtree(spot.folder, ignore_errors=True)
    spot.folder.mkdir()
    path = spot.folder / "move.json"
    with (spot.folder / "move.new").open("w", encoding="utf-8") as file:
        json.dump(asdict(wanted), file)
        file.flush()
        os.fsync(file.fileno())
    (spot.folder / "move.new").replace(path)


def _lock_index(spot: Checkout, wanted: Move) -> None:
    """The lock is a link to the announcement, so that nobody can take it for another git's."""
    lock, own = spot.git_dir / "index.lock", spot.folder / "move.json"
    until = time.monotonic() + _PATIENCE_S
    while not _is_own(lock, own):
        try:
            os.link(own, lock)
        except FileExistsError as taken:
            if time.monotonic() > until:
                raise LandingRefused(
                    f"{lock} is there: another git is at work in {spot.root}",
                    hint=f"wait for it; if none is at work, remove that file, then {wanted.verb} again",
                ) from taken
            time.sleep(_PAUSE_S)
        except OSError:  # a file system without links
            with suppress(FileExistsError):
                _copy_exclusively(own, lock)


def _copy_exclusively(source: Path, target: Path) -> None:
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(source.read_bytes())


def _is_own(lock: Path, own: Path) -> bool:
    try:
        return lock.samefile(own) or lock.read_bytes() == own.read_bytes()
    except OSError:
        return False


def _clear(spot: Checkout) -> None:
    lock = spot.git_dir / "index.lock"
    if _is_own(lock, spot.folder / "move.json"):
        lock.unlink()
    # The announcement goes last: while it is there, the rest is known to be ours.
    for path in sorted(spot.folder.glob("*"), key=lambda path: path.name == "move.json"):
        path.unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        spot.folder.rmdir()


def _tip(spot: Checkout, branch: str) -> CommitId | None:
    found = Git(spot.common_dir).run("rev-parse", "--verify", "--quiet", branch, ok=(0, 1))
    return CommitId(found.out.decode().strip()) if found.code == 0 else None


def _head(spot: Checkout) -> str:
    return Git(spot.git_dir).run("symbolic-ref", "--quiet", "HEAD", ok=(0, 1)).out.decode().strip()


def _overwriting(spot: Checkout, wanted: Move, paths: list[str], submodules: list[str]) -> LandingRefused:
    inside = [f"save what is in {path}, then empty it: `git submodule deinit {path}`" for path in submodules[:_SHOWN]]
    return LandingRefused(
        f"{_NOUN[wanted.verb]} would overwrite {_listed(paths)} in {spot.root}",
        hint="; ".join([*inside, f"then {wanted.verb} again"]) if inside else _MAKE_WAY[wanted.verb],
        branch=wanted.branch,
        paths=paths,
    )


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more


def _judge(spot: Checkout, wanted: Move, is_ours: IsOurs) -> None:
    """Raises LandingRefused for what is in the way; git has the last word, for what is not seen from outside (flags)."""
    comparison = _Comparison(spot, wanted.old, wanted.new)
    blocked = comparison.strict(is_ours)
    if blocked:
        raise _overwriting(spot, wanted, blocked, comparison.submodules_in(blocked))
    answer = spot.door.run("read-tree", "-n", "-m", "-u", wanted.old, wanted.new, ok=range(256))
    if answer.code == 0:
        return
    lines = text(answer.err).splitlines()
    named = [line.split("'")[1] for line in lines if line.startswith("error:") and line.count("'") > 1]
    if named:
        raise _overwriting(spot, wanted, named, [])
    raise LandingRefused(
        f"{spot.root} cannot take {RefName(wanted.branch).short}: {answer.last_error}",
        hint=f"finish what is going on there, then {wanted.verb} again",
    )


class _Comparison:
    """What stands in the checkout against the two commits of a move; prepares the copy of the index for git.

    Git moves a path whose entry is the old one, and leaves one whose entry is the new one alone.
    """

    def __init__(self, spot: Checkout, old: str, new: str) -> None:
        self._spot, self._door = spot, spot.door
        (spot.folder / "index.lock").unlink(missing_ok=True)
        if (spot.git_dir / "index").exists():
            shutil.copyfile(spot.git_dir / "index", spot.folder / "index")
        self._door.run("update-index", "-q", "--refresh", ok=(0, 1))
        self._changed = _changed(self._door, old, new)
        self._staged, self._unseen = _staged(self._door)
        self._dirty = set(self._door.run("diff-files", "--name-only", "-z", ok=(0, 1)).items())
        modes = self._door.run("config", "--type=bool", "core.fileMode", ok=(0, 1)).out
        self._trusts_modes = modes.strip() != b"false"
        self._wanted: dict[bytes, Entry | None] = {}

    def strict(self, is_ours: IsOurs) -> list[str]:
        """What of the user's is in the way; nothing is, when the list is empty, and then the index is prepared."""
        blocked = self._staged_otherwise()
        copies = []
        for path, actual in self._doubtful():
            old, new = self._changed[path]
            if actual == new:
                self._wanted[path] = new
            elif isinstance(actual, Path):
                blocked.append(os.fsdecode(actual))
            elif self._is_copy(path, is_ours):
                copies.append(self._at(path))
            elif not (actual == old == self._staged.get(path) or (actual is None and _is_gitlink(old))):
                blocked.append(os.fsdecode(path))
        if not blocked:
            for copy in copies:
                copy.unlink()
            self._prepare()
        return sorted(set(blocked))

    def submodules_in(self, blocked: list[str]) -> list[str]:
        """The submodules among or below these paths whose directories are in the way: not those that are only staged."""
        tops = {os.fsencode(path) for path in set(blocked) - set(self._staged_otherwise())}
        links = sorted(path for path, entry in self._staged.items() if _is_gitlink(entry))
        inside = [path for path in links if not tops.isdisjoint((path, *self._parents(path)))]
        full = [path for path in inside if _kind(self._at(path)) == stat.S_IFDIR and _names(self._at(path))]
        return [os.fsdecode(path) for path in full]

    def lenient(self) -> list[str]:
        """After a death: what the user changed since stays; returns what is staged, and then prepares nothing."""
        blocked = self._staged_otherwise()
        if blocked:
            return blocked
        for path, actual in self._doubtful():
            old, new = self._changed[path]
            beginning = actual not in (None, old, new) and self._is_beginning(path)
            if beginning:
                self._at(path).unlink()
            self._wanted[path] = old if beginning or (actual in (None, old) and actual != new) else new
        self._prepare()
        return []

    def _staged_otherwise(self) -> list[str]:
        return [os.fsdecode(path) for path, both in self._changed.items() if self._staged.get(path) not in both]

    def _doubtful(self) -> list[tuple[bytes, Entry | Path | None]]:
        """Paths whose file is not what the index says, with what is there: nothing, an entry, or what is in the way."""
        found: dict[bytes, Entry | Path | None] = {}
        plain = []
        for path in self._changed:
            # A submodule that git calls clean may still have ignored files and branches of its own.
            clean = path in self._staged and path not in self._dirty and not _is_gitlink(self._staged[path])
            there = self._there(path)
            if not (clean or (there is None and (path not in self._staged or path in self._unseen))):
                found[path] = there
                if isinstance(there, tuple) and not there[1]:
                    plain.append(path)
        hashed = dict(zip(plain, _hashed(self._door, plain), strict=True))
        return [(path, (at[0], hashed[path]) if path in hashed and at else at) for path, at in found.items()]  # type: ignore[index]  # a plain file has an entry

    def _there(self, path: bytes) -> Entry | Path | None:
        """A plain file comes without its blob; a path says what is in the way, be it a parent of this one."""
        at = self._at(path)
        for parent in self._parents(path):
            kind = _kind(self._at(parent))
            if kind is None:
                return None
            if kind != stat.S_IFDIR:
                return None if self._changed.get(parent, (None, None))[0] else Path(os.fsdecode(parent))
        mode = _mode(at)
        if mode is None:
            return None
        if stat.S_ISLNK(mode):
            return _LINK, _blob(os.fsencode(os.readlink(at)))  # noqa: PTH115 - a Path would change `./x`
        if stat.S_ISREG(mode):
            return self._file_mode(path, mode), ""
        return self._directory(path) if stat.S_ISDIR(mode) else Path(os.fsdecode(path))

    def _directory(self, path: bytes) -> Entry | Path | None:
        """As `_there`, for a directory; git removes one that gives way to a file, with all that a submodule has in it."""
        old, new = self._changed[path]
        staged = self._staged.get(path)
        content = _names(self._at(path))
        if _is_gitlink(old) and (_is_gitlink(new) or not (new or self._is_filled(path))):
            return staged  # git leaves the directory alone
        if _is_gitlink(old) and not content:
            return old
        if _is_gitlink(new) and (not content or ".git" in content):
            return new if staged else None
        return None if self._only_tracked(path) else Path(os.fsdecode(path))

    def _is_filled(self, path: bytes) -> bool:
        """Whether the new commit has files below this path."""
        return any(entry and other.startswith(path + b"/") for other, (_, entry) in self._changed.items())

    def _file_mode(self, path: bytes, mode: int) -> str:
        if not self._trusts_modes:
            return next((entry[0] for entry in self._files(path)), "100644")
        return "100755" if mode & stat.S_IXUSR else "100644"

    def _only_tracked(self, path: bytes) -> bool:
        """A directory that gives way to a file may hold nothing else than what goes with it."""
        for folder, folders, files in os.walk(self._at(path)):
            links = [name for name in folders if Path(folder, name).is_symlink()]
            for name in (*files, *links):
                if os.path.relpath(os.fsencode(Path(folder, name)), os.fsencode(self._spot.root)) not in self._staged:
                    return False
        return True

    @staticmethod
    def _parents(path: bytes) -> Iterator[bytes]:
        parts = path.split(b"/")
        return (b"/".join(parts[:length]) for length in range(1, len(parts)))

    def _at(self, path: bytes) -> Path:
        return self._spot.root / os.fsdecode(path)

    def _is_copy(self, path: bytes, is_ours: IsOurs) -> bool:
        """An untracked file that the harness itself put there."""
        at = self._at(path)
        return path not in self._staged and _kind(at) == stat.S_IFREG and is_ours(os.fsdecode(path), at.read_bytes())

    def _is_beginning(self, path: bytes) -> bool:
        """Whether git was still writing this file when it died."""
        at = self._at(path)
        if _kind(at) != stat.S_IFREG:
            return False
        there = at.read_bytes()
        name = f"--path={os.fsdecode(path)}"
        wholes = [self._door.run("cat-file", "--filters", name, entry[1]).out for entry in self._files(path)]
        return any(whole.startswith(there) for whole in wholes)

    def _files(self, path: bytes) -> list[Entry]:
        """What the two commits have there, the new one first; a submodule is no file."""
        return [entry for entry in reversed(self._changed[path]) if entry and not _is_gitlink(entry)]

    def _prepare(self) -> None:
        if not self._wanted:
            return
        lines = [
            b"%s %s 0\t%s\0" % (*(part.encode() for part in entry or (_ABSENT[:1], "0" * 40)), path)
            for path, entry in self._wanted.items()
        ]
        self._door.run("update-index", "--add", "--replace", "-z", "--index-info", stdin=b"".join(lines))
        self._door.run("update-index", "-q", "--refresh", ok=(0, 1))


def _changed(door: Git, old: str, new: str) -> dict[bytes, tuple[Entry | None, Entry | None]]:
    """Every path that differs, with its entry in both commits."""
    items = door.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new).items()
    found = {}
    for head, path in zip(items[::2], items[1::2], strict=True):
        before, after, one, two, _ = head.decode().lstrip(":").split(" ")
        found[path] = (_entry(before, one), _entry(after, two))
    return found


def _entry(mode: str, oid: str) -> Entry | None:
    return None if mode == _ABSENT else (mode, oid)


def _is_gitlink(entry: Entry | None) -> bool:
    return entry is not None and entry[0] == _GITLINK


def _staged(door: Git) -> tuple[Mapping[bytes, Entry], set[bytes]]:
    """The index, and which of its paths are not expected on disk; an unmerged path equals nothing."""
    entries, unseen = {}, set()
    for item in door.run("ls-files", "-s", "-t", "-z").items():
        head, _, path = item.partition(b"\t")
        tag, mode, oid, stage = head.decode().split(" ")
        entries[path] = (mode, oid if stage == "0" else "")
        if tag in "Ss":
            unseen.add(path)
    return entries, unseen


def _hashed(door: Git, paths: list[bytes]) -> list[str]:
    """The blobs that git would make of these files, filters applied."""
    if not paths:
        return []
    lines = b"\n".join(map(_quoted, paths)) + b"\n"
    return door.run("hash-object", "--stdin-paths", stdin=lines).out.decode().split()


def _quoted(path: bytes) -> bytes:
    if b"\n" not in path and not path.startswith(b'"'):
        return path
    return b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"'


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _names(folder: Path) -> list[str]:
    """What is in the directory; one that cannot be read is not empty."""
    try:
        return [entry.name for entry in folder.iterdir()]
    except PermissionError:
        return ["?"]


def _mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _kind(path: Path) -> int | None:
    mode = _mode(path)
    return None if mode is None else stat.S_IFMT(mode)
