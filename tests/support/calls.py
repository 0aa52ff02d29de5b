"""How much work a function does, as a number that no load on the machine changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_in(work: Callable[[], object]) -> int:
    """How many functions, of Python and of C, are called while it works; the same for the same work."""
    count = 0

    def counting(_frame: FrameType, event: str, _about: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
