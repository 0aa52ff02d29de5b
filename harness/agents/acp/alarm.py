"""What ends a session before its turn is over: the first error that nobody in the talk can answer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Alarm:
    """Rung from callbacks that have no caller to raise to."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()
        self._error: Exception | None = None

    def ring(self, error: Exception) -> None:
        if self._error is None:
            self._error = error
            self._rung.set()

    async def unless_rung(self, work: Coroutine[Any, Any, None]) -> None:
        """Does the work, or raises the error that the alarm was rung with, whichever is first."""
        task, rung = asyncio.create_task(work), asyncio.create_task(self._rung.wait())
        try:
            await asyncio.wait({task, rung}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()
            rung.cancel()
            ended = await asyncio.gather(task, rung, return_exceptions=True)
        if self._error is not None:
            raise self._error
        if isinstance(ended[0], BaseException):
            raise ended[0]
