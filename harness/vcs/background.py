"""Work that nobody waits for: done by other threads, and finished before anybody asks for its result."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec

P = ParamSpec("P")
_THREADS = 2


class Background:
    """Few threads, started when there is something to do; a process does not end before they are done."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._pending: dict[Hashable, Future[object]] = {}
        self._lock = threading.Lock()

    def do(self, work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Returns at once; what the work raises, `settle` raises. The same thing is not done twice at a time."""
        what = (work, args, tuple(kwargs.items()))
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="background")
            self._pending = {key: job for key, job in self._pending.items() if not job.done() or job.exception()}
            if what not in self._pending:
                self._pending[what] = self._pool.submit(work, *args, **kwargs)

    def settle(self) -> None:
        """Waits until everything is done; raises the first thing that went wrong."""
        with self._lock:
            pool, self._pool = self._pool, None
            pending, self._pending = self._pending, {}
        if pool is not None:
            pool.shutdown(wait=True)
        for job in pending.values():
            job.result()
