"""Asks a live coordinator to stop: by its identity, never by a pid that somebody else may have now."""

from __future__ import annotations

import os
import time

from harness.errors import Busy, EnvironmentProblem, NotFound
from harness.model.ids import RunId
from harness.model.process import ProcessIdentity
from harness.sandbox import identity, tree
from harness.wiring import Project

_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.05


def cancel(project: Project, run_id: RunId) -> None:
    """Returns when the coordinator, also a stopped one, let go; raises when nobody holds the run or it does not let go."""
    who = project.reading.holder(run_id)
    if who is None:
        raise NotFound(f"nobody is driving run {run_id}", hint="`orchestrix resume` carries on with it")
    if who.get("host") != os.uname().nodename:
        raise EnvironmentProblem(f"run {run_id} is driven on {who.get('host')}", hint="cancel it there")
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
