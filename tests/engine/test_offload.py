"""Work in threads, or at once: a cancelled caller waits for it, however often it is cancelled, and hears of its end."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

import pytest

from harness.engine.offload import Offload
from harness.model import limits


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_caller_that_is_cancelled_again_still_waits(times: int) -> None:
    """And the failure of the work is not told to the terminal by the event loop."""
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()
    told: list[object] = []

    def work() -> None:
        begun.set()
        go.wait(10)
        ended.set()
        raise OSError("the disk is gone")

    async def scene() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))
        offload = Offload()
        caller = asyncio.ensure_future(offload(work))
        await asyncio.to_thread(begun.wait, 10)
        for _ in range(times):
            caller.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert not caller.done()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert ended.is_set()
        offload.close()

    asyncio.run(scene())
    gc.collect()
    assert told == []


def test_what_is_quick_is_done_at_once_and_what_is_not_goes_to_a_thread_again() -> None:
    """A kind of call is quick when its last one was; the event loop is held up by one slow call at most."""
    slow = limits.QUICK_MS * 1.5 / 1000
    done: list[tuple[float, bool]] = []

    def work(pause: float) -> None:
        done.append((pause, threading.current_thread() is threading.main_thread()))
        time.sleep(pause)

    async def scene() -> None:
        offload = Offload()
        for pause in (0, 0, slow, 0, 0):
            await offload(work, pause)
        offload.close()

    asyncio.run(scene())
    assert done == [(0, False), (0, True), (slow, True), (0, False), (0, True)]
