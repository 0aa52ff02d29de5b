"""Time for pauses: begins at the wall clock and then only goes forwards, whatever somebody does to that clock."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from harness.ports import Clock


class SteadyClock:
    def __init__(self, clock: Clock) -> None:
        self._began = clock.now()
        self._zero = time.monotonic()

    def now(self) -> datetime:
        return self._began + timedelta(seconds=time.monotonic() - self._zero)
