"""Signals: the first one asks the run to stop in order, the second one does not wait."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from harness.errors import Exit, Interrupted

T = TypeVar("T")
_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs to the end; a signal cancels it and becomes Interrupted with exit 130 or 143."""
    return asyncio.run(_guarded(main))


async def _guarded(main: Coroutine[Any, Any, T]) -> T:
    loop = asyncio.get_running_loop()
    task = loop.create_task(main)
    received: list[signal.Signals] = []

    def on_signal(number: signal.Signals) -> None:
        received.append(number)
        if len(received) > 1:
            # Children die with this process (the sandbox sees to it); the log already says how far the run came.
            os._exit(_status(number))
        task.cancel()

    for number in _HANDLED:
        loop.add_signal_handler(number, on_signal, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not received:
            raise
        error = Interrupted(
            f"stopped by {received[0].name}; nothing is lost", hint="orchestrix resume carries on from here"
        )
        error.exit_code = _status(received[0])
        raise error from None
    finally:
        for number in _HANDLED:
            loop.remove_signal_handler(number)


def _status(number: signal.Signals) -> int:
    return Exit.SIGINT if number is signal.SIGINT else Exit.SIGTERM
