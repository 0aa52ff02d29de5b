"""The rules of the lease: one coordinator for a run, and an older epoch never appends again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
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


def is_free(held: Held | None) -> bool:
    """Whether the lease was given back, or its process is known to be gone."""
    return held is None or held.released or identity.is_alive(held.holder) is False


def looks_alive(held: Held, now: datetime) -> bool:
    """Whether the holder's process is seen here or its heartbeat looks fresh: enough to tell people, not to take over."""
    return not is_free(held) and (identity.is_alive(held.holder) is True or _looks_fresh(held, now))


def _looks_fresh(held: Held, now: datetime) -> bool:
    """By two wall clocks, one of which may be wrong: an old heartbeat proves nothing."""
    try:
        age = now.astimezone(UTC) - datetime.fromisoformat(held.heartbeat_at)
    except (TypeError, ValueError):
        return False
    return abs(age.total_seconds()) * 1_000 < limits.LEASE_TTL_MS


class Takeover:
    """Decides whether the lease of a run may be taken, by looking at it again and again.

    A lease that is free is taken at once. A holder that is silent (stopped, stuck, or on a machine that cannot be seen
    from here) is replaced only when its heartbeat stayed the same over `LOOKS` looks, `LEASE_LOOK_MS` apart. No clock
    is compared with another one; looks are counted, so a machine that slept between two of them has not waited.
    """

    LOOKS = limits.LEASE_TTL_MS // limits.LEASE_LOOK_MS

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._first: Held | None = None
        self._looks = 0

    def allowed(self, held: Held | None, now: datetime) -> bool:
        """False while it must be looked at again; raises Busy, naming the holder, when the holder shows a sign of life."""
        if held is None or is_free(held):
            return True
        if self._first is None:
            if _looks_fresh(held, now):
                raise self._busy(held)
            self._first = held
        if (held.epoch, held.heartbeat_at) != (self._first.epoch, self._first.heartbeat_at):
            raise self._busy(held)
        self._looks += 1
        return self._looks > self.LOOKS

    def _busy(self, held: Held) -> Busy:
        who = f"process {held.holder.get('pid')} on {held.holder.get('host')}"
        return Busy(
            f"run {self._run_id} is held by {who} since {held.acquired_at}",
            hint="wait for it, or cancel it with `orchestrix cancel`",
            run_id=self._run_id,
            holder=describe(held),
        )


def successor(run_id: str, old: Held | None, holder: Mapping[str, Any], now: datetime) -> Held:
    """The next lease of the run."""
    since = timestamp(now)
    return Held(
        run_id=run_id, epoch=(old.epoch if old else 0) + 1, holder=dict(holder), acquired_at=since, heartbeat_at=since
    )


def next_beat(held: Held, now: datetime) -> str:
    """The time of this heartbeat; never the same text as the last one, even where the wall clock stands still."""
    beat = timestamp(now)
    return beat if beat != held.heartbeat_at else timestamp(now + timedelta(microseconds=1))


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
