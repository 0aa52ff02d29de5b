"""Keeps a coordinator's lease alive while it works; losing it stops the coordinator at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from harness.engine.journal import Journal
from harness.errors import OrchestrixError
from harness.model import limits


@contextlib.asynccontextmanager
async def beating(journal: Journal) -> AsyncIterator[None]:
    """For as long as the body runs; raises what the store said when the lease was lost."""
    owner = asyncio.current_task()
    lost: list[OrchestrixError] = []

    async def beat() -> None:
        while True:
            await asyncio.sleep(limits.LEASE_HEARTBEAT_MS / 1000)
            try:
                journal.heartbeat()
            except OrchestrixError as error:
                lost.append(error)
                if owner is not None:
                    owner.cancel()
                return

    heart = asyncio.create_task(beat())
    try:
        yield
    except asyncio.CancelledError:
        if lost:
            raise lost[0] from None
        raise
    finally:
        heart.cancel()
