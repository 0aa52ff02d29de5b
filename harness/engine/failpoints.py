"""Named places where a test may kill the process; inert unless ORCHESTRIX_FAILPOINT names one.

Both variables are read when the process starts: dozens of places are passed for each step.

`ORCHESTRIX_FAILPOINT=name` dies at the first hit, `name#3` at the third. `ORCHESTRIX_FAILPOINT_TRACE=file` appends
every hit to a file, so that a sweep can list what there is to kill.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

_WANTED = os.environ.get("ORCHESTRIX_FAILPOINT")
_TRACE = os.environ.get("ORCHESTRIX_FAILPOINT_TRACE")
_hits: Counter[str] = Counter()


def hit(name: str) -> None:
    """Dies here, by SIGKILL, if a test asked for it."""
    if _WANTED or _TRACE:
        _count(name)


def _count(name: str) -> None:
    _hits[name] += 1
    if _TRACE:
        with Path(_TRACE).open("a", encoding="utf-8") as file:
            file.write(f"{name}#{_hits[name]}\n")
    if _WANTED and _WANTED in (name if _hits[name] == 1 else "", f"{name}#{_hits[name]}"):
        os.kill(os.getpid(), signal.SIGKILL)
