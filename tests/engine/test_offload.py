"""Work in threads: a cancelled caller waits for it, however often it is cancelled, and hears of its end."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from harness.engine.offload import Offload


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
