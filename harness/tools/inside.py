"""Files of one workspace, reached so that no link, race or odd name leads out of it or into git's own files.

A path is walked one directory at a time, each opened relative to the one before, without following links; a link in
the middle is followed by hand as long as it stays inside. A link at the end is never written through.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness import namespace
from harness.errors import MACHINE_FAULTS, ContractViolation, ToolFailed

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINKS = 40
_OWN = (".orchestrix", "local")


class Spot(NamedTuple):
    """A name in an open directory."""

    directory: int
    name: str
    path: str

    def mode(self) -> int | None:
        """The kind and permissions of what is there; None when nothing is."""
        try:
            return os.stat(self.name, dir_fd=self.directory, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None


class File(NamedTuple):
    content: bytes
    executable: bool


class Inside:
    """The workspace as tools may use it."""

    def __init__(self, root: Path) -> None:
        self._root = _resolved(root)

    @property
    def root(self) -> Path:
        return Path(self._root)

    def read(self, path: str, most: int | None = None) -> File:
        """A regular file, links inside the workspace followed, up to `most` bytes."""
        with self.spot(path, follow=True) as spot, _told(path):
            # A FIFO would block the open, a device might answer without end.
            handle = os.open(
                spot.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=spot.directory
            )
            with os.fdopen(handle, "rb") as file:
                mode = os.fstat(handle).st_mode
                if not stat.S_ISREG(mode):
                    raise ToolFailed(f"{path} is not a regular file", path=path)
                return File(file.read() if most is None else file.read(most), bool(mode & stat.S_IXUSR))

    def is_link(self, path: str) -> bool:
        with self.spot(path) as spot:
            return stat.S_ISLNK(spot.mode() or 0)

    def exists(self, path: str) -> bool:
        try:
            with self.spot(path) as spot:
                return spot.mode() is not None
        except ToolFailed:  # a directory above it is missing
            return False

    def write(self, path: str, content: bytes, *, executable: bool | None = None) -> None:
        """Creates or replaces in one step; `executable` None keeps what was there."""
        with self.spot(path, make=True) as spot, _told(path):
            before = spot.mode()
            if before is not None and stat.S_ISDIR(before):
                raise ToolFailed(f"{path} is a directory", path=path)
            kept = before is not None and stat.S_ISREG(before) and bool(before & stat.S_IXUSR)
            temporary = f".orchestrix-{secrets.token_hex(8)}.tmp"
            mode = 0o777 if (kept if executable is None else executable) else 0o666
            handle = os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=spot.directory
            )
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                os.replace(temporary, spot.name, src_dir_fd=spot.directory, dst_dir_fd=spot.directory)
            except BaseException:
                with contextlib.suppress(OSError):  # the first error is the one to hear of
                    os.unlink(temporary, dir_fd=spot.directory)
                raise

    def remove(self, path: str) -> None:
        """Deletes a file or a link, never a directory."""
        with self.spot(path) as spot, _told(path):
            os.unlink(spot.name, dir_fd=spot.directory)

    def remove_empty_above(self, path: str) -> None:
        """Git knows no empty directories; those that a deletion left are removed as git would."""
        above = path.rpartition("/")[0]
        while above:
            try:
                with self.spot(above) as spot:
                    os.rmdir(spot.name, dir_fd=spot.directory)
            except (OSError, ToolFailed):
                return
            above = above.rpartition("/")[0]

    def move(self, source: str, target: str) -> None:
        """Renames a file, link or directory; what is at the target is never replaced."""
        with self.spot(source) as old, self.spot(target, make=True) as new, _told(source):
            if old.mode() is None:
                raise ToolFailed(f"{source} does not exist", path=source)
            if new.mode() is not None:
                raise ToolFailed(f"{target} exists already", hint="delete it first", path=target)
            os.rename(old.name, new.name, src_dir_fd=old.directory, dst_dir_fd=new.directory)

    def entries(self, path: str) -> list[tuple[str, str]]:
        """Names in a directory, sorted, each with its mark: `/` a directory, `@` a link, nothing a file."""
        with self._directory(path) as handle, _told(path), os.scandir(handle) as found:
            marked = [(entry.name, _mark(entry)) for entry in found if entry.name.casefold() != ".git"]
        return sorted(marked)

    def files(self) -> Iterator[str]:
        """Every file and link to one, as a relative path; links are not followed, git's and our own files left out."""
        root = namespace.seen(self._root)
        for folder, folders, names, _ in os.fwalk(root):
            above = os.path.relpath(folder, root).removeprefix(".").lstrip("/")
            prefix = f"{above}/" if above else ""
            folders[:] = sorted(
                name for name in folders if name.casefold() != ".git" and (above.casefold(), name.casefold()) != _OWN
            )
            yield from (prefix + name for name in sorted(names) if name.casefold() != ".git")

    def resolved(self, path: str) -> str:
        """Where a path leads, links followed; `.` is the workspace. Raises ToolFailed when nothing is there."""
        if _is_root(path):
            return "."
        with self.spot(path, follow=True) as spot:
            if spot.mode() is None:
                raise ToolFailed(f"{path} does not exist", path=path)
            return f"./{spot.path}"

    @contextlib.contextmanager
    def _directory(self, path: str) -> Iterator[int]:
        with contextlib.ExitStack() as stack, _told(path):
            if _is_root(path):
                handle = os.open(namespace.seen(self._root), _DIRECTORY)
            else:
                spot = stack.enter_context(self.spot(path, follow=True))
                handle = os.open(spot.name, _DIRECTORY, dir_fd=spot.directory)
            stack.callback(os.close, handle)
            yield handle

    def make_directory_for(self, path: str) -> None:
        with self.spot(path, make=True):
            pass

    @contextlib.contextmanager
    def spot(self, path: str, *, make: bool = False, follow: bool = False) -> Iterator[Spot]:
        """Where `path` is; `make` creates missing directories, `follow` also follows a link at the end.

        Raises ContractViolation for what lies outside, in git's own files or in the harness' own.
        """
        with contextlib.ExitStack() as stack, _told(path):
            walk = _Walk(self._root, path, stack)
            walk.through(make=make)
            while follow and walk.follow_last():
                walk.through(make=False)
            yield Spot(walk.directory, walk.name, "/".join((*walk.names, walk.name)))


class _Walk:
    """The way down from the root: open directories, their names, and what is left to go."""

    def __init__(self, root: str, path: str, stack: contextlib.ExitStack) -> None:
        self._root = root
        self._path = path
        self._stack = stack
        self._links = 0
        self._open: list[int] = [self._keep(os.open(namespace.seen(root), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))]
        self.names: list[str] = []
        if path.startswith("/") or ".." in path.split("/"):
            raise self._refused("is not a path inside the workspace")
        words = _words(path)
        if not words:
            raise self._refused("names no file")
        for count in range(len(words)):  # before the walk, so that a denial does not depend on what exists
            self._check(*words[: count + 1])
        self._left, self.name = deque(words[:-1]), words[-1]

    @property
    def directory(self) -> int:
        return self._open[-1]

    def through(self, *, make: bool) -> None:
        """Goes to the last directory."""
        while self._left:
            word = self._left.popleft()
            if word == "..":
                self._up()
                continue
            self._check(*self.names, word)
            try:
                self._enter(word, make=make)
            except OSError as error:
                if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                    raise
                words = self._link(word)
                if words is None:
                    raise
                self._left.extendleft(reversed(words))
        self._check(*self.names, self.name)

    def follow_last(self) -> bool:
        """Sets out for the target of a link at the end; False when it is none."""
        words = self._link(self.name)
        if words is None:
            return False
        if not words or words[-1] == "..":
            raise ToolFailed(f"{self._path} is a directory", path=self._path)
        self._left, self.name = deque(words[:-1]), words[-1]
        return True

    def _enter(self, word: str, *, make: bool) -> None:
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(word, dir_fd=self.directory)
        self._open.append(self._keep(os.open(word, _DIRECTORY, dir_fd=self.directory)))
        self.names.append(word)

    def _up(self) -> None:
        if not self.names:
            raise self._refused("leads out of the workspace")
        self.names.pop()
        self._open.pop()

    def _link(self, word: str) -> list[str] | None:
        """The way to a link's target from here; None when it is no link."""
        try:
            target = os.readlink(word, dir_fd=self.directory)
        except OSError:
            return None
        self._links += 1
        if self._links > _LINKS:
            raise ToolFailed(f"{self._path} goes through too many links", path=self._path)
        if not target.startswith("/"):
            return _words(target)
        if not f"{target}/".startswith(f"{self._root}/"):
            raise self._refused("leads out of the workspace")
        del self._open[1:]
        self.names.clear()
        return _words(target.removeprefix(self._root))

    def _check(self, *words: str) -> None:
        """Case does not protect: on some file systems .GIT is .git."""
        if words[-1].casefold() == ".git":
            raise self._refused("belongs to git")
        if tuple(word.casefold() for word in words) == _OWN:
            raise self._refused("belongs to the harness")

    def _keep(self, handle: int) -> int:
        self._stack.callback(os.close, handle)
        return handle

    def _refused(self, why: str) -> ContractViolation:
        return ContractViolation(
            f"{self._path!r:.200} {why}", hint="use a relative path to a file of the workspace", path=self._path[:200]
        )


def _resolved(root: Path) -> str:
    """Where it leads, in the kernel's words: `realpath` would ask it for every part, and every attempt asks for this."""
    try:
        handle = os.open(namespace.seen(root), os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return os.path.realpath(root)
    try:
        return os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115 - one text, not parts
    finally:
        os.close(handle)


def _is_root(path: str) -> bool:
    return bool(path) and not path.startswith("/") and not _words(path)


def _mark(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "@"
    return "/" if entry.is_dir(follow_symlinks=False) else ""


def _words(path: str) -> list[str]:
    return [word for word in path.split("/") if word not in {"", "."}]


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    """Failures of the system as failures of the tool, unless the machine is at fault: that judges no step."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in MACHINE_FAULTS:
            raise
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise ToolFailed(f"{path!r:.200}: {words}", path=path[:200]) from error
