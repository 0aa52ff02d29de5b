"""What a run tells to dashboards: metrics as text, for a person, a scraper or a textfile collector."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

from harness.engine import reports
from harness.engine.journal import Watch
from harness.model import exposition, metrics
from harness.model.events import Fact, RunFinished
from harness.model.metrics import Metrics
from harness.model.state import RunState

_APART_SECONDS = 1.0


def measured(state: RunState) -> Metrics:
    return metrics.measure([state])


def exposed(states: Sequence[RunState]) -> str:
    """The text format of Prometheus, one sample for each run."""
    return exposition.text(
        [({"run_id": state.run_id, "status": state.status.value}, measured(state)) for state in states]
    )


def write(path: Path, states: Sequence[RunState]) -> None:
    """Whole or not at all: a collector never reads half a file."""
    reports.replace(path, exposed(states).encode())


def keeping(path: Path, watch: Watch) -> Watch:
    """The watch, with a metrics file kept up to date: at most once a second, and at the run's end."""
    written = -_APART_SECONDS

    def kept(fact: Fact, state: RunState) -> None:
        nonlocal written
        watch(fact, state)
        now = time.monotonic()
        if isinstance(fact, RunFinished) or now - written >= _APART_SECONDS:
            written = now
            with contextlib.suppress(OSError):  # a dashboard that cannot be told does not stop the work
                write(path, [state])

    return kept
