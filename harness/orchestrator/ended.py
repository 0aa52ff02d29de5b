"""How the steps of a run ended, with their reports, for the questions that are asked about them."""

from __future__ import annotations

from harness.engine import reports
from harness.engine.context import Context
from harness.model.ids import TaskId
from harness.orchestrator.thinking import results
from harness.orchestrator.thinking.results import Result


def of(ctx: Context) -> list[Result]:
    found = {}
    for step in ctx.journal.state.ordered():
        path = reports.archive(ctx, TaskId(step.task_id))
        if path.is_file():
            found[step.task_id] = path.read_text(encoding="utf-8", errors="replace")
    return results.of_run(ctx.journal.state, found)
