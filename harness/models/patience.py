"""Asks again where the provider or the network faltered, as long as the wait fits into the time of the call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from harness.errors import ModelFailed, ModelFault
from harness.model import limits

Result = TypeVar("Result")
_PASSING = {ModelFault.RATE_LIMIT, ModelFault.UNREACHABLE}


async def patiently(call: Callable[[int], Awaitable[Result]], timeout_ms: int) -> Result:
    """What `call`, given the milliseconds that are left, returns; raises the last ModelFailed."""
    deadline = time.monotonic() + timeout_ms / 1000
    for number in range(limits.MODEL_TRIES):
        left_ms = max(1, int((deadline - time.monotonic()) * 1000))
        try:
            return await call(left_ms)
        except ModelFailed as error:
            wait = _wait_ms(error, number) / 1000
            last = number == limits.MODEL_TRIES - 1
            if last or error.kind not in _PASSING or time.monotonic() + wait >= deadline:
                raise
        await asyncio.sleep(wait)
    raise AssertionError("the last try returns or raises")


def _wait_ms(error: ModelFailed, number: int) -> int:
    return limits.MODEL_WAIT_MS << number if error.retry_after_ms is None else error.retry_after_ms
