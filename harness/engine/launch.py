"""Takes a run under its lease and carries it to its end, or leaves it resumable."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

from harness.engine import create, failpoints, record, recover, reports, speculate, tripwire
from harness.engine.context import Context
from harness.engine.journal import Journal, Watch
from harness.engine.offload import Offload
from harness.engine.options import Options
from harness.engine.parts import Parts
from harness.errors import EnvironmentProblem, Fenced, Internal, OrchestrixError
from harness.model import events as ev
from harness.model import limits, rounds
from harness.model.nesting import Nest
from harness.model.state import RunState
from harness.ports import Lease


async def begin(
    parts: Parts, lease: Lease, request: create.Request, holder: dict[str, object], watch: Watch
) -> RunState:
    """A new run, from its first line to its last."""
    create.run(parts, lease, request)
    return await carry_on(parts, lease, holder, watch)


async def carry_on(
    parts: Parts, lease: Lease, holder: Mapping[str, object], watch: Watch, above: Context | None = None
) -> RunState:
    """From wherever the log says the run is; the lease is given back however this ends.

    A nested run shares the places of the run above it: both together have no more attempts at once than it allows.
    """
    offload = Offload()
    try:
        state = parts.store.state(lease.run_id)
        journal = Journal(parts.store, lease, state, watch)
        options = Options.from_dict(state.options)
        ctx = Context(
            run_id=lease.run_id,
            plan=rounds.plan(state.goal, state.rounds),
            schedule=rounds.order(state.rounds),
            options=options,
            parts=parts,
            journal=journal,
            offload=offload,
            holder=holder,
            slots=above.slots if above else asyncio.Semaphore(options.jobs),
            nest=Nest.of(state),
        )
        return await _coordinate(ctx)
    except OSError as error:
        raise EnvironmentProblem(
            f"run {lease.run_id} stopped: {error.strerror or error}"
            + (f": {error.filename}" if error.filename else ""),
            hint=f"nothing is lost; when the cause is gone, orchestrix resume {lease.run_id}",
        ) from error
    except OrchestrixError:
        raise
    except Exception as bug:
        bug.add_note(f"{Internal.WHILE_DRIVING}{lease.run_id}")
        raise
    finally:
        offload.close()
        with contextlib.suppress(OrchestrixError):
            parts.store.release(lease)


async def _coordinate(ctx: Context) -> RunState:
    journal = ctx.journal
    resumed = journal.state.coordinators > 0
    reports.make_folder(ctx.run_dir / "logs")
    if resumed:
        journal.remember(ctx.parts.store.events(ctx.run_id))
    journal.append(ev.RunStarted(epoch=journal.lease.epoch, holder=dict(ctx.holder), resumed=resumed))
    try:
        async with _heartbeat(ctx), speculate.none_left(ctx):
            await tripwire.arm(ctx)
            ctx.tracked = await ctx.offload(ctx.parts.vcs.tracked, ".orchestrix")
            await recover.recover(ctx)
            await ctx.parts.drive(ctx)
    except asyncio.CancelledError:
        journal.append(ev.RunCancelled(cause="a signal asked the coordinator to stop"))
        raise
    except (OrchestrixError, OSError):
        _stop_if_replaced(ctx)
        raise
    if journal.state.waiting is not None:
        return journal.state
    # The record comes last: where it is, nothing of the run is left to do.
    if not ctx.options.keep:
        await ctx.offload(ctx.parts.vcs.forget_run, ctx.run_id)
    failpoints.hit("before:record")
    await ctx.offload(ctx.parts.vcs.write_record, ctx.run_id, record.files(ctx), ctx.options.commit_time)
    failpoints.hit("after:record")
    return journal.state


def _stop_if_replaced(ctx: Context) -> None:
    """Whatever a replaced coordinator runs into is its successor's doing: raises Fenced if there is one."""
    try:
        ctx.parts.store.heartbeat(ctx.journal.lease)
    except Fenced:
        raise
    except OrchestrixError:
        return


@contextlib.asynccontextmanager
async def _heartbeat(ctx: Context) -> AsyncIterator[None]:
    """Keeps the lease alive; losing it stops this coordinator at once."""
    owner = asyncio.current_task()
    lost: list[Exception] = []

    async def beat() -> None:
        while True:
            await asyncio.sleep(limits.LEASE_HEARTBEAT_MS / 1000)
            try:
                ctx.parts.store.heartbeat(ctx.journal.lease)
            except Exception as error:  # noqa: BLE001 - after a bug, too, a run without heartbeats must stop
                ctx.journal.broken = error
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
