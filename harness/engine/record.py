"""A finished run as files for a git ref: plan, contracts, events, reports."""

from __future__ import annotations

import io
import os
from pathlib import Path

from pydantic_core import to_json

from harness.engine.context import Context
from harness.errors import NotFound
from harness.model.events import RunFinished
from harness.model.ids import RunId
from harness.ports import Store, Vcs


def files(ctx: Context) -> dict[str, bytes]:
    """What the record holds, by path."""
    state = ctx.journal.state
    lines = io.BytesIO()  # a long log is in memory once, not line by line as well
    for line in ctx.parts.store.lines(ctx.run_id):
        lines.write(line.text.encode() + b"\n")
    found = {
        "plan.json": to_json(dict(state.plan), indent=2),
        "events.jsonl": lines.getvalue(),
    }
    for step in state.ordered():
        found[f"contracts/step-{step.task_id}.json"] = to_json(dict(step.contract), indent=2)
    return found | _reports(ctx)


def _reports(ctx: Context) -> dict[str, bytes]:
    if not ctx.run_dir.is_dir():  # somebody removed them: the record still holds the log
        return {}
    with os.scandir(ctx.run_dir) as entries:  # there are two for every step
        chosen = [entry for entry in entries if entry.name.endswith((".md", ".json")) and entry.is_file()]
    return {f"reports/{entry.name}": Path(entry.path).read_bytes() for entry in chosen}


def is_complete(store: Store, vcs: Vcs, run_id: RunId) -> bool:
    """Whether the record holds the run's last end; a coordinator may have died between the two."""
    ends = [envelope.hash for envelope in store.events(run_id) if envelope.type == RunFinished.type]
    try:
        recorded = vcs.read_record(run_id)
    except NotFound:
        return False
    return bool(ends) and ends[-1].encode() in recorded["events.jsonl"]
