"""Ends a run: its coordinator is asked to stop, then every child is closed; the work is kept."""

from __future__ import annotations

import os
import time

from harness.engine import ending, record, signals
from harness.engine.journal import Watch
from harness.errors import Busy, EnvironmentProblem, UsageError
from harness.model.ids import RunId
from harness.model.lifecycle import RunStatus
from harness.model.process import ProcessIdentity
from harness.model.state import RunState
from harness.runs import nested, telemetry
from harness.sandbox import identity, tree
from harness.store import identity as liveness
from harness.wiring import Project, holder

_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.05


def cancel(project: Project, run_id: RunId, watch: Watch) -> RunState:
    """The run with every child closed; raises UsageError for one that has ended, Busy where its coordinator does not let go."""
    nested.require_top(project.reading, run_id, "cancel")
    _stop_coordinator(project, run_id)
    parts = project.parts()
    state = parts.store.state(run_id)
    if state.ended and (state.status is not RunStatus.CANCELLED or record.is_complete(parts.store, parts.vcs, run_id)):
        raise UsageError(
            f"run {run_id} has ended already: it is {state.status}", hint=f"see `orchestrix status {run_id}`"
        )
    who = holder()
    lease = parts.store.acquire(run_id, who)
    with telemetry.observing(project, watch) as observed:
        return signals.run(ending.end(parts, lease, who, observed, why="the run was cancelled"))


def _stop_coordinator(project: Project, run_id: RunId) -> None:
    """Returns when the coordinator, also a stopped one, let go: it is told by its identity, never by a pid alone."""
    who = project.reading.holder(run_id)
    if who is None:
        return
    if who.get("host") != os.uname().nodename:
        raise EnvironmentProblem(f"run {run_id} is driven on {who.get('host')}", hint="cancel it there")
    if liveness.is_alive(who) is None:
        raise Busy(
            f"run {run_id} is held by process {who['pid']}, which cannot be seen from here: it is in another container,"
            " or another user's",
            hint="cancel it there, or wait for it",
            run_id=run_id,
            holder=dict(who),
        )
    process = ProcessIdentity(int(who["pid"]), str(who["start_time"]), str(who["boot_id"]))
    found = tree.read(process.pid)
    if found is not None and identity.alive(process):
        tree.terminate([found])
    until = time.monotonic() + _PATIENCE_SECONDS
    while identity.alive(process) and project.reading.holder(run_id) is not None:
        if time.monotonic() > until:
            raise Busy(
                f"process {process.pid} has not let go of run {run_id} yet", hint="try again, or end it yourself"
            )
        time.sleep(_PAUSE_SECONDS)
