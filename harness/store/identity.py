"""Which process is this, and does it still live? A pid alone does not tell: pids are reused."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_DEAD = {"Z", "X"}


def this_process() -> dict[str, Any]:
    """The holder of a lease, as this process."""
    pid = os.getpid()
    _state, start_time = _stat(pid) or ("", "")
    return {
        "pid": pid,
        "host": os.uname().nodename,
        "boot_id": _boot_id(),
        "pid_ns": _pid_namespace(),
        "start_time": start_time,
    }


def is_alive(holder: Mapping[str, Any]) -> bool | None:
    """Whether the process that this holder names still runs; None when that cannot be told from here.

    A pid means something only in the boot and in the pid namespace that gave it: two containers that share a state
    folder share the boot, and each has a process 7.
    """
    here = (_boot_id(), _pid_namespace())
    if not all(here) or (holder.get("boot_id"), holder.get("pid_ns")) != here:
        return None
    pid, start_time = holder.get("pid"), holder.get("start_time")
    if not isinstance(pid, int) or not start_time:
        return None
    found = _stat(pid)
    if found is None:
        return None if _is_hidden(pid) else False
    return found[0] not in _DEAD and found[1] == str(start_time)


def _pid_namespace() -> str:
    """The namespace of this process; empty where /proc shows the processes of another one."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):  # noqa: PTH115 - a plain read of a link that is no path
            return ""
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - as above
    except OSError:
        return ""


def _is_hidden(pid: int) -> bool:
    """Whether a process is there that /proc does not show: `hidepid` hides those of other users."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return _stat(pid) is None


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _stat(pid: int) -> tuple[str, str] | None:
    """State and start time (fields 3 and 22); the name before them may hold spaces and parentheses."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    after_name = text.rpartition(")")[2].split()
    return after_name[0], after_name[19]
