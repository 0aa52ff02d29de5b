"""The model that a run may ask: what it answered before stands in the log and is not asked again."""

from __future__ import annotations

from harness.engine.context import Context
from harness.model.ids import TaskId
from harness.orchestrator.thinking import asking as questions
from harness.orchestrator.thinking.asking import Asking


def asking(ctx: Context, task: TaskId | None) -> Asking | None:
    """A model with the memory of this run; None where no model is configured."""
    model = ctx.parts.model()
    if model is None:
        return None
    memory = questions.remembered(ctx.parts.store.events(ctx.run_id))
    return Asking(model, ctx.journal.append, memory, task)
