"""Blocking git work in threads, so that steps do not hold each other up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from harness.model import limits

P = ParamSpec("P")
R = TypeVar("R")


class Offload:
    """Runs a blocking call in a thread; a cancelled caller still waits for it, so that no effect outlives its owner."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=limits.OFFLOAD_THREADS, thread_name_prefix="git")

    async def __call__(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        future = asyncio.get_running_loop().run_in_executor(self._pool, lambda: function(*args, **kwargs))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():  # whoever is cancelled may be cancelled again
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({future})
            future.exception()  # heard here, because the cancelled caller will not ask; the cancellation has a cause
            raise

    def close(self) -> None:
        self._pool.shutdown(wait=True)
