"""The rules of the lease: one coordinator for a run, and an older epoch never appends again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from harness.errors import Busy, Fenced
from harness.model import limits
from harness.model.late import dataclass
from harness.ports import Lease
from harness.store import identity


@dataclass(frozen=True)
class Held:
    """A lease as the store keeps it."""

    run_id: str
    epoch: int
    holder: Mapping[str, Any]
    acquired_at: str
    heartbeat_at: str
    released: bool = False


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def alive(held: Held, now: datetime) -> bool:
    """A holder lives while its heartbeat is fresh and nothing shows that its process is gone.

    A process that is there but silent (stopped, or stuck) can be replaced: the epoch keeps it from acting again.
    A heartbeat far in the future counts as old: clocks jump, and such a lease would never run out.
    """
    if held.released or identity.is_alive(held.holder) is False:
        return False
    try:
        age = now.astimezone(UTC) - datetime.fromisoformat(held.heartbeat_at)
    except (TypeError, ValueError):
        return False
    return abs(age.total_seconds()) * 1_000 < limits.LEASE_TTL_MS


def successor(run_id: str, old: Held | None, holder: Mapping[str, Any], now: datetime) -> Held:
    """The next lease of the run; raises Busy, naming the holder, while the old one is alive."""
    if old is not None and alive(old, now):
        raise Busy(
            f"run {run_id} is held by process {old.holder.get('pid')} on {old.holder.get('host')} since {old.acquired_at}",
            hint="wait for it, or cancel it with `orchestrix cancel`",
            run_id=run_id,
            holder=describe(old),
        )
    since = timestamp(now)
    return Held(
        run_id=run_id, epoch=(old.epoch if old else 0) + 1, holder=dict(holder), acquired_at=since, heartbeat_at=since
    )


def require_current(held: Held | None, lease: Lease) -> Held:
    """The lease as it is kept; raises Fenced unless it is still this one."""
    if held is None or held.released or held.epoch != lease.epoch:
        newest = "nobody" if held is None or held.released else f"process {held.holder.get('pid')}, epoch {held.epoch}"
        raise Fenced(
            f"run {lease.run_id}: the lease of epoch {lease.epoch} is lost; the run is held by {newest}",
            hint="this coordinator must stop; `orchestrix status` shows the run",
            run_id=lease.run_id,
        )
    return held


def describe(held: Held) -> dict[str, Any]:
    """The holder with its epoch and since when it holds the run."""
    return {**held.holder, "epoch": held.epoch, "since": held.acquired_at}
