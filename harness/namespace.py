"""The mount namespace of this process' overlay workspaces, held by a process of its own.

A process may give itself a user namespace only while it has a single thread. The holder has one, so that overlays can be
mounted at any time, by any user, from any thread of any program. Nobody else sees the mounts, and they end with the
holder, which ends with this process, however it ends: nothing has to be found and unmounted after a crash.

A workspace keeps its path in the holder's namespace. This process itself sees an empty directory there, so whatever
opens a file of a workspace asks `seen` for the way to it, and whatever starts a program in one puts `entry` before it.
"""

from __future__ import annotations

import atexit
import errno
import marshal
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

from harness.errors import EnvironmentProblem

_SOURCE = str(Path(__file__).resolve().parents[1])
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from harness.namespace_holder import main; main(int(sys.argv[2]))"
)
_GONE = "the process that holds the mounts has ended"
_lock = threading.RLock()
_trees: dict[str, _Mount] = {}
"""What is mounted, by the path that it was asked for and by the one that this leads to."""


class _Mount(NamedTuple):
    """`place` has no link in it: an absolute one would lead back to what this process sees itself."""

    holder: _Holder
    place: str


class _Holder:
    """The other process, as this one knows it."""

    def __init__(self) -> None:
        """Starts it; raises OSError where the system gives no namespace."""
        self.program = shutil.which("nsenter") or ""
        if not self.program:
            raise FileNotFoundError(errno.ENOENT, "the program nsenter is not installed")
        # A group of its own: Ctrl-C is for the coordinator. The same session: a stray process of a step is in another.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PROGRAM, _SOURCE, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={},
            cwd="/",
            process_group=0,
        )
        self.pid = self._process.pid
        self.root = -1
        try:
            _raise_for(self._hear(), "the system gives no namespace for mounts: ")
            self.root = os.open(f"/proc/{self.pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except BaseException:
            self.end()
            raise

    @property
    def ended(self) -> bool:
        """Asked without burying it: its number stays its own."""
        try:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return self.root == -1 or found is not None

    def ask(self, *words: str) -> None:
        """Raises OSError with the kernel's reason."""
        assert self._process.stdin is not None  # noqa: S101 - narrows the type; it is a pipe
        request = marshal.dumps(words)
        with _lock:
            try:
                self._process.stdin.write(len(request).to_bytes(4, "little") + request)
                number = self._hear()
            except BaseException:
                self.end()  # an answer that nobody took would be taken for that to the next request
                raise
        _raise_for(number)

    def _hear(self) -> int:
        """The error number that it answers with; zero is none."""
        assert self._process.stdout is not None  # noqa: S101 - as above
        answer = self._process.stdout.read(1)
        if not answer:
            raise BrokenPipeError(errno.EPIPE, _GONE)
        return int(answer[0])

    def end(self) -> None:
        """Its mounts go with it."""
        self._let_go()
        self._process.kill()
        self._process.wait()

    def forget(self) -> None:
        """For a fork of this process: what leads to the holder would keep it alive."""
        self._let_go()
        self._process.returncode = 0

    def _let_go(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        root, self.root = self.root, -1
        if root != -1:
            os.close(root)


def _raise_for(number: int, words: str = "") -> None:
    if number:
        raise OSError(number, f"{words}{os.strerror(number)}")


class _Present:
    """The holder that new mounts go to."""

    holder: _Holder | None = None


def mount(kind: str, target: str, options: str) -> None:
    """Mounts there, for programs that begin with `entry`; raises OSError with the kernel's reason."""
    with _lock:
        holder = _Present.holder
        if holder is not None and holder.ended:
            holder.end()
            holder = None
        holder = _Present.holder = holder or _Holder()
        made = _Mount(holder, os.path.realpath(target))
        holder.ask(kind, target, options)  # until it is in the list, `restart` of another thread would end the holder
        _trees[target] = _trees[made.place] = made


def unmount(target: str) -> bool:
    """Takes the mount away; False where this process has none there, or none any more: it goes with its directory."""
    found = _trees.pop(target, None)
    if found is None:
        return False
    _trees.pop(found.place, None)
    if found.holder.ended:
        return False
    try:
        found.holder.ask(target)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINVAL):
            return False
        raise
    return True


def is_mounted(target: str) -> bool:
    found = _trees.get(target)
    return found is not None and not found.holder.ended


def seen(path: str | os.PathLike[str]) -> str:
    """The way by which this process reaches what a program of a workspace finds at `path`; mostly the path itself.

    Raises EnvironmentProblem when the mount is gone: the empty directory below it must not pass for the workspace.
    """
    text = os.fspath(path)
    found, below = _mount_of(text)
    return text if found is None else f"/proc/self/fd/{found.holder.root}{found.place}{below}"


def named(path: str | os.PathLike[str]) -> str:
    """The path by which a program of a workspace finds what `seen` led this process to."""
    text = os.fspath(path)
    for holder in _known():
        way = f"/proc/self/fd/{holder.root}"
        if text.startswith(f"{way}/"):  # and not that of another descriptor whose number begins alike
            return text.removeprefix(way)
    return text


def entry(path: str | os.PathLike[str]) -> list[str]:
    """What comes before the arguments of a program that works at `path`; it starts in `/`. Mostly nothing.

    Raises EnvironmentProblem as `seen` does.
    """
    found, _below = _mount_of(os.fspath(path))
    if found is None:
        return []
    user = ["--user", "--preserve-credentials"] if os.geteuid() else []
    return [found.holder.program, "--target", str(found.holder.pid), *user, "--mount", "--"]


def restart() -> bool:
    """Lets the next mount begin in a new namespace, which knows what was mounted since; False while this one is in use."""
    with _lock:
        holder = _Present.holder
        if holder is None or any(found.holder is holder for found in list(_trees.values())):
            return False
        _Present.holder = None
        holder.end()
        return True


def _mount_of(path: str) -> tuple[_Mount | None, str]:
    """The mount that the path lies in, if it lies in one, and the rest of the path below it."""
    if not _trees:
        return None, ""
    place, found = path, _trees.get(path)
    while found is None and place:
        place = place.rpartition("/")[0]
        found = _trees.get(place)
    if found is not None and found.holder.ended:
        raise EnvironmentProblem(f"{path} is not there any more: {_GONE}", hint="resume the run")
    return found, path[len(place) :]


def _known() -> set[_Holder]:
    present = () if _Present.holder is None else (_Present.holder,)
    return {*present, *(found.holder for found in list(_trees.values()))}


def _end() -> None:
    for holder in _known():
        holder.end()


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - another thread of the parent may have held it
    _lock = threading.RLock()
    for holder in _known():
        holder.forget()
    _Present.holder = None
    _trees.clear()


atexit.register(_end)
os.register_at_fork(after_in_child=_after_fork)
