"""Time: the system's, or a fixed one for commits where SOURCE_DATE_EPOCH says so."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    @property
    def fixed(self) -> bool:
        return os.environ.get("SOURCE_DATE_EPOCH", "").isdigit()

    def commit_time(self) -> int:
        return int(os.environ["SOURCE_DATE_EPOCH"]) if self.fixed else int(time.time())
