"""A coordinator in a process of its own: `python -m tests.store.appender DATABASE RUN COUNT` tells each durable seq.

With a fourth word it then waits for a line on stdin and appends once more.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from harness.model.ids import RunId
from harness.store import identity
from harness.store.sqlite import SqliteStore
from tests.store.samples import created, of, run_created, run_started, tool_called


class WallClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def commit_time(self) -> int:
        return 0

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def main(database: str, run: str, count: str, wait: str = "") -> None:
    run_id = RunId(run)
    store = SqliteStore(Path(database), WallClock())
    lease = store.acquire(run_id, identity.this_process())
    if run_id in store.run_ids():
        store.append(lease, [run_started(lease.epoch)])
    else:
        store.append(lease, [run_created(), created(**of(0, run=run_id))])
    for number in range(int(count)):
        state = store.append(lease, [tool_called(str(number), **of(0, run=run_id))])
        sys.stdout.write(f"{state.last_seq}\n")
        sys.stdout.flush()
    if wait:
        sys.stdin.readline()
        store.append(lease, [run_started(lease.epoch)])
    store.release(lease)
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
