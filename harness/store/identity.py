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
    return {"pid": pid, "host": os.uname().nodename, "boot_id": _boot_id(), "start_time": start_time}


def is_alive(holder: Mapping[str, Any]) -> bool | None:
    """Whether the process that this holder names still runs; None when that cannot be told from here."""
    boot_id = _boot_id()
    if not boot_id or (holder.get("host"), holder.get("boot_id")) != (os.uname().nodename, boot_id):
        return None
    pid, start_time = holder.get("pid"), holder.get("start_time")
    if not isinstance(pid, int) or not start_time:
        return None
    found = _stat(pid)
    return found is not None and found[0] not in _DEAD and found[1] == str(start_time)


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
