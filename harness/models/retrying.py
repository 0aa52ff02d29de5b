"""Asks again where the provider or the network faltered, as long as the wait fits into the time of the call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any, TypeVar

from harness.errors import ModelFailed, ModelFault
from harness.model import limits
from harness.ports import Answer, Turn, Usage

Result = TypeVar("Result", Answer[Any], Turn)
_PASSING = {ModelFault.RATE_LIMIT, ModelFault.UNREACHABLE}


async def with_retries(call: Callable[[int], Awaitable[Result]], timeout_ms: int) -> Result:
    """Calls `call` with the milliseconds that are left; raises the last ModelFailed. The usage of all tries is counted."""
    deadline = time.monotonic() + timeout_ms / 1000
    spent = Usage()
    for number in range(limits.MODEL_TRIES):
        left_ms = max(1, int((deadline - time.monotonic()) * 1000))
        try:
            result = await call(left_ms)
            return replace(result, usage=spent + result.usage)
        except ModelFailed as error:
            spent += Usage(**error.usage)
            error.usage = asdict(spent)
            wait = _wait_ms(error, number) / 1000
            last = number == limits.MODEL_TRIES - 1
            if last or error.kind not in _PASSING or time.monotonic() + wait >= deadline:
                raise
        await asyncio.sleep(wait)
    raise AssertionError("the last try returns or raises")


def _wait_ms(error: ModelFailed, number: int) -> int:
    return limits.MODEL_WAIT_MS << number if error.retry_after_ms is None else error.retry_after_ms
