"""Time: the system's, or a fixed one for commits where SOURCE_DATE_EPOCH says so."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    """Reads the wall clock once and then counts from there: a clock that is set during a run changes no duration."""

    def __init__(self) -> None:
        self._began = datetime.now(UTC)
        self._zero = _uptime()

    def now(self) -> datetime:
        return self._began + timedelta(seconds=_uptime() - self._zero)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    @property
    def fixed(self) -> bool:
        return os.environ.get("SOURCE_DATE_EPOCH", "").isdigit()

    def commit_time(self) -> int:
        return int(os.environ["SOURCE_DATE_EPOCH"]) if self.fixed else int(time.time())


def _uptime() -> float:
    """Seconds since the machine was started, those in which it slept included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
