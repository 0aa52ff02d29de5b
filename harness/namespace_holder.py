"""The process that holds a mount namespace and mounts in it on request; it ends when the process that asked for it does.

It runs as its own small program (see `namespace`). A request is four bytes of length and a marshalled list: three texts
mount, one unmounts. An answer is one byte: the error number, or zero. The first answer says whether the namespace is there.
"""

from __future__ import annotations

import ctypes
import errno
import marshal
import os
import select
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing costs more than the rest of this file
    from typing import NoReturn

_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_SLAVE, _RECURSIVE = 1 << 19, 1 << 14
_DETACH, _NO_FOLLOW = 2, 8
_REQUESTS, _ANSWERS = 0, 1
# A stop that is sent to a whole group or service must not take the workspaces from a coordinator that still winds up.
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)


def main(coordinator: int) -> NoReturn:
    """Serves until the coordinator is gone, however it ended."""
    try:
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        _serve(os.pidfd_open(coordinator))
    finally:
        os._exit(0)


def _serve(coordinator: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
    libc.umount2.argtypes = (ctypes.c_char_p, ctypes.c_int)
    poll = select.poll()
    for handle in (_REQUESTS, coordinator):
        poll.register(handle, select.POLLIN)
    _answer(_separate(libc))
    while coordinator not in [handle for handle, _event in poll.poll()]:
        size = int.from_bytes(_read(4), "little")
        words = [os.fsencode(word) for word in marshal.loads(_read(size))]  # noqa: S302 - from the coordinator alone
        _answer(_mounted(libc, *words) if len(words) > 1 else _unmounted(libc, words[0]))


def _separate(libc: ctypes.CDLL) -> int:
    """Takes the namespaces; what is mounted in them reaches nobody else, and what others mount still comes in."""
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_MOUNTS | (_NEW_USER if user else 0)):
        return ctypes.get_errno()
    try:
        if user:
            for name, content in (
                ("setgroups", "deny"),
                ("uid_map", f"{user} {user} 1"),
                ("gid_map", f"{group} {group} 1"),
            ):
                with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123 - pathlib costs more than all else here
                    file.write(content)
    except OSError as error:
        return error.errno or errno.EPERM
    return ctypes.get_errno() if libc.mount(b"none", b"/", None, _SLAVE | _RECURSIVE, None) else 0


def _mounted(libc: ctypes.CDLL, kind: bytes, target: bytes, options: bytes) -> int:
    return ctypes.get_errno() if libc.mount(kind, target, kind, 0, options) else 0


def _unmounted(libc: ctypes.CDLL, target: bytes) -> int:
    """Where something uses it, the name is freed and the rest follows."""
    if libc.umount2(target, _NO_FOLLOW) and libc.umount2(target, _NO_FOLLOW | _DETACH):
        return ctypes.get_errno()
    return 0


def _read(size: int) -> bytes:
    """Exactly so much; the end of the file is the coordinator's end, and then this one's."""
    data = b""
    while len(data) < size:
        piece = os.read(_REQUESTS, size - len(data))
        if not piece:
            os._exit(0)
        data += piece
    return data


def _answer(number: int) -> None:
    os.write(_ANSWERS, bytes([number]))
