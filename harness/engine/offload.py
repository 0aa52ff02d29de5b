"""Blocking git work in threads, so that steps do not hold each other up; what is quick is done at once.

Handing a call to a thread and back costs more than most calls take, and a thread that wants the interpreter waits for
the loop to let go of it at every system call.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from harness.model import limits

P = ParamSpec("P")
R = TypeVar("R")


class Offload:
    """Runs a blocking call; a cancelled caller still waits for it, so that no effect outlives its owner.

    A kind of call goes to a thread until one of its kind was quick, and again as soon as one was not.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=limits.OFFLOAD_THREADS, thread_name_prefix="git")
        self._quick: set[str] = set()

    async def __call__(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        kind = function.__qualname__
        if kind in self._quick:
            return self._timed(kind, function, *args, **kwargs)
        future = asyncio.get_running_loop().run_in_executor(
            self._pool, lambda: self._timed(kind, function, *args, **kwargs)
        )
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():  # whoever is cancelled may be cancelled again
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({future})
            future.exception()  # heard here, because the cancelled caller will not ask; the cancellation has a cause
            raise

    def _timed(self, kind: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        began = time.monotonic()
        try:
            return function(*args, **kwargs)
        finally:
            if (time.monotonic() - began) * 1000 < limits.QUICK_MS:
                self._quick.add(kind)
            else:
                self._quick.discard(kind)

    def close(self) -> None:
        self._pool.shutdown(wait=True)
