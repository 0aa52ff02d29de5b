"""What the loop does when nothing else is next: a checkpoint, now and then."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

from harness.engine import failpoints
from harness.engine.context import Context
from harness.model import events as ev
from harness.orchestrator.workflow import WorkflowStateModel

_SHARE = 50  # a checkpoint holds the whole log: a long run must not spend more than this part of its time on them


class Maintenance:
    """Keeps the checkpoint of a run that a person started; those of nested runs are part of it."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._last = time.monotonic()
        self._seen = self._critical()
        self._cost_ms = 0.0

    def look(self) -> timedelta | None:
        """Writes a checkpoint when one is due; returns how long until the next may be."""
        if self._ctx.nest is not None:
            return None
        if self._due_ms() <= 0:
            if self._critical() == self._seen:
                self.checkpoint()
            else:
                self.save()
        return timedelta(milliseconds=max(1.0, self._due_ms()))

    def _due_ms(self) -> float:
        """After a closed task or an adopted plan at once, else when the last one is old; never beyond its share of the time."""
        age_ms = (time.monotonic() - self._last) * 1000
        apart_ms = self._ctx.options.checkpoint_ms if self._critical() == self._seen else 0
        return max(apart_ms, _SHARE * self._cost_ms) - age_ms

    def _critical(self) -> tuple[int, int]:
        """Changes with every plan that is adopted and every task that is closed."""
        return len(self._ctx.journal.state.rounds), self._ctx.journal.closed

    def checkpoint(self) -> None:
        """Writes a checkpoint and says so in the log."""
        if self._ctx.nest is None:
            path = self.save()
            self._ctx.journal.append(ev.WorkflowCheckpoint(path=f"{self._ctx.run_id}/checkpoints/{path.name}"))

    def save(self) -> Path:
        """Writes the file alone: the fact that makes it due stands in the log already."""
        began = time.monotonic()
        path = self._ctx.run_dir / "checkpoints" / "latest.json"
        failpoints.hit("before:checkpoint")
        WorkflowStateModel.of(self._ctx.parts.store, self._ctx.run_id).save_checkpoint(path)
        failpoints.hit("after:checkpoint")
        self._last, self._seen = time.monotonic(), self._critical()
        self._cost_ms = (self._last - began) * 1000
        return path
