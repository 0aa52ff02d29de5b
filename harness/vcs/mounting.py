"""Mounts in a namespace of this process alone: nobody outside sees them, and they end with the process, however it ends.

Nothing has to be found and unmounted after a crash, and a mount made for one step never shows up, writable, in the
sandbox of another one: a mount that is only a slave passes nothing on.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

_NEW_MOUNTS = 0x00020000
_NEW_USER = 0x10000000
_SLAVE, _RECURSIVE = 1 << 19, 1 << 14
_DETACH, _NO_FOLLOW = 2, 8
_entered: set[tuple[int, int]] = set()
_thread = threading.local()


def enter() -> None:
    """Gives this thread, and those that it starts from now on, a mount namespace; raises OSError where it may not.

    Without root it takes a user namespace too, which the system gives only to a process with a single thread.
    """
    user = os.geteuid()
    if getattr(_thread, "entered_as", None) == user:
        return
    if _namespace() not in _entered:
        if user == 0:
            _checked(_libc().unshare(_NEW_MOUNTS), "a mount namespace")
        else:
            _own_user_namespace(_libc())
        _checked(_libc().mount(b"none", b"/", None, _SLAVE | _RECURSIVE, None), "/")
        _entered.add(_namespace())
    _thread.entered_as = user


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


def mount(kind: str, target: str, options: str) -> None:
    """Raises OSError with the kernel's reason."""
    name = kind.encode()
    _checked(_libc().mount(name, os.fsencode(target), name, 0, os.fsencode(options)), target)


def unmount(target: str) -> bool:
    """Takes the mount away, if there is one; where something uses it, the name is freed and the rest follows."""
    libc, place = _libc(), os.fsencode(target)
    if libc.umount2(place, _NO_FOLLOW) == 0:
        return True
    # The kernel refuses for many reasons, and asks who may unmount before it asks what.
    if not os.path.ismount(target):
        return False
    _checked(libc.umount2(place, _NO_FOLLOW | _DETACH), target)
    return True


def _namespace() -> tuple[int, int]:
    """Which mount namespace this thread is in, as whom: it has that of the thread that started it."""
    return Path("/proc/thread-self/ns/mnt").stat().st_ino, os.geteuid()


def _own_user_namespace(libc: ctypes.CDLL) -> None:
    user, group = os.geteuid(), os.getegid()
    _checked(libc.unshare(_NEW_USER | _NEW_MOUNTS), "a user namespace")
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    words = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
    libc.mount.argtypes, libc.umount2.argtypes = words, (ctypes.c_char_p, ctypes.c_int)
    return libc


def _checked(status: int, what: str) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
