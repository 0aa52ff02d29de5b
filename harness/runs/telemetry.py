"""What runs tell to dashboards: metrics as text and traces to a collector; off unless a person set it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.engine import reports
from harness.engine.journal import Watch
from harness.errors import OrchestrixError
from harness.model.events import Fact, RunFinished
from harness.model.ids import RunId
from harness.model.state import RunState
from harness.ports import Store
from harness.wiring import Project

if TYPE_CHECKING:
    from harness.model.metrics import Metrics
    from harness.model.spans import Span

_APART_SECONDS = 1.0


def measured(log: Store, state: RunState) -> Metrics:
    """A run and the runs that are nested in it, together."""
    from harness.model import metrics  # noqa: PLC0415 - most runs tell nobody, here and below

    return metrics.measure(_family(log, state))


def _family(log: Store, state: RunState) -> Iterator[RunState]:
    yield state
    for step in state.steps.values():
        if step.child_run is not None:
            yield from _family(log, log.state(RunId(step.child_run)))


def traced(log: Store, run_id: RunId, above: Span | None = None) -> list[Span]:
    """The spans of a run, and under their steps those of the runs that are nested in it."""
    from harness.model import tracing  # noqa: PLC0415 - as above

    spans = tracing.of_log(log.events(run_id), above)
    steps = {span.attributes[tracing.TASK]: span for span in spans if tracing.TASK in span.attributes}
    for step in log.state(run_id).ordered():
        if step.child_run is not None:
            spans += traced(log, RunId(step.child_run), steps[step.task_id])
    return spans


def exposed(samples: Sequence[tuple[RunState, Metrics]]) -> str:
    """The text format of Prometheus, one sample for each run."""
    from harness.model import exposition  # noqa: PLC0415 - as above

    return exposition.text([({"run_id": run.run_id, "status": run.status.value}, found) for run, found in samples])


def write(path: Path, samples: Sequence[tuple[RunState, Metrics]]) -> None:
    """Whole or not at all: a collector never reads half a file."""
    reports.replace(path, exposed(samples).encode(), mode=reports.SHARED)


@contextmanager
def observing(project: Project, watch: Watch) -> Iterator[Watch]:
    """The watch, with what the settings want told; a dashboard that cannot be told does not stop the work."""
    file, collector = project.settings.telemetry_metrics_file, project.settings.telemetry_otlp
    if file is None and collector is None:
        yield watch
        return
    observer = _Observer(project.store, watch, file)
    try:
        yield observer
    finally:
        if collector is not None and observer.run_id is not None:
            from harness.runs import otlp  # noqa: PLC0415 - as above

            try:
                otlp.send(traced(project.store, observer.run_id), collector)
            except OrchestrixError as error:
                import logging  # noqa: PLC0415 - as above

                logging.getLogger(__name__).warning(
                    "the trace of run %s was not sent: %s", observer.run_id, error.message
                )


class _Observer:
    """Keeps the metrics file up to date: at most once a second, and at the run's end."""

    def __init__(self, store: Store, watch: Watch, file: Path | None) -> None:
        self._store = store
        self._watch = watch
        self._file = file
        self._written = -_APART_SECONDS
        self.run_id: RunId | None = None

    def __call__(self, fact: Fact, state: RunState) -> None:
        self._watch(fact, state)
        if state.parent_run is not None:  # it is measured with the run that it is nested in
            return
        self.run_id = RunId(state.run_id)
        now = time.monotonic()
        if self._file is not None and (isinstance(fact, RunFinished) or now - self._written >= _APART_SECONDS):
            self._written = now
            with contextlib.suppress(OSError):
                write(self._file, [(state, measured(self._store, state))])
