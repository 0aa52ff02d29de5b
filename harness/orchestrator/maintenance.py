"""What the loop does when nothing else is next: a checkpoint, now and then."""

from __future__ import annotations

import time

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
        self._seq = ctx.journal.state.last_seq
        self._cost_ms = 0.0

    def look(self) -> None:
        """Writes a checkpoint if the last one is old, beside what it cost, and something has happened since."""
        age_ms = (time.monotonic() - self._last) * 1000
        due_ms = max(self._ctx.options.checkpoint_ms, _SHARE * self._cost_ms)
        if age_ms >= due_ms and self._ctx.journal.state.last_seq > self._seq:
            self.checkpoint()

    def checkpoint(self) -> None:
        if self._ctx.nest is not None:
            return
        began = time.monotonic()
        path = self._ctx.run_dir / "checkpoints" / "latest.json"
        failpoints.hit("before:checkpoint")
        WorkflowStateModel.of(self._ctx.parts.store, self._ctx.run_id).save_checkpoint(path)
        failpoints.hit("after:checkpoint")
        self._ctx.journal.append(ev.WorkflowCheckpoint(path=f"{self._ctx.run_id}/checkpoints/{path.name}"))
        self._last, self._seq = time.monotonic(), self._ctx.journal.state.last_seq
        self._cost_ms = (self._last - began) * 1000
