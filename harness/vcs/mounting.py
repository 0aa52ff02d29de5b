"""Mounts in a namespace of this process alone: nobody outside sees them, and they end with the process, however it ends.

Nothing has to be found and unmounted after a crash, and a mount made for one step never shows up, writable, in the
sandbox of another one: a mount that is only a slave passes nothing on.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path

_NEW_MOUNTS = 0x00020000
_NEW_USER = 0x10000000
_SLAVE, _RECURSIVE = 1 << 19, 1 << 14
_DETACH, _NO_FOLLOW = 2, 8
_entered: set[tuple[int, int]] = set()


def enter() -> None:
    """Gives this thread, and those that it starts from now on, a mount namespace; raises OSError where it may not.

    Without root it takes a user namespace too, which the system gives only to a process with a single thread.
    """
    if _namespace() in _entered:
        return
    libc = _libc()
    if os.geteuid() == 0:
        _checked(libc.unshare(_NEW_MOUNTS), "a mount namespace")
    else:
        _own_user_namespace(libc)
    _checked(libc.mount(b"none", b"/", None, _SLAVE | _RECURSIVE, None), "/")
    _entered.add(_namespace())


def rehearsed(problem: Callable[[], str]) -> str:
    """What `problem` says, asked in a child first where entering may fail half-way: there is no way back from it."""
    if os.geteuid() == 0 or _namespace() in _entered:
        return problem()
    if threading.active_count() > 1:
        return "only a process with a single thread may take a user namespace"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, problem().encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        said = answer.read().decode()
    failed = os.waitpid(child, 0)[1] != 0
    return said or ("it could not be tried out" if failed else problem())


def mount(kind: str, target: Path, options: str) -> None:
    """Raises OSError with the kernel's reason."""
    given = (kind.encode(), os.fsencode(target), kind.encode(), 0, os.fsencode(options))
    _checked(_libc().mount(*given), str(target))


def unmount(target: Path) -> None:
    """Takes the mount away; where something still uses it, the name is freed at once and the rest follows."""
    libc = _libc()
    if libc.umount2(os.fsencode(target), _NO_FOLLOW) != 0:
        _checked(libc.umount2(os.fsencode(target), _NO_FOLLOW | _DETACH), str(target))


def _namespace() -> tuple[int, int]:
    """Which mount namespace this thread is in, as whom: it has that of the thread that started it."""
    return Path("/proc/thread-self/ns/mnt").stat().st_ino, os.geteuid()


def _own_user_namespace(libc: ctypes.CDLL) -> None:
    user, group = os.geteuid(), os.getegid()
    _checked(libc.unshare(_NEW_USER | _NEW_MOUNTS), "a user namespace")
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(status: int, what: str) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
