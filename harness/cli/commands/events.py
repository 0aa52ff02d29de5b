"""`orchestrix events`: the log of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from harness.cli import options, output, streams
from harness.cli.declare import App, Option
from harness.cli.options import Directory, Jsonl, Run
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.model.events import Envelope
    from harness.model.ids import RunId
    from harness.ports import Store

_PAUSE_MS = 500


def register(app: App) -> None:
    @app.command()
    def events(
        run: Run = "latest",
        directory: Directory = None,
        follow: Annotated[bool, Option("-f", "--follow", help="Wait for more until the run ends.")] = False,
        after: Annotated[int, Option(help="Only events after this seq.")] = 0,
        nested: Annotated[bool, Option("--nested", help="With the events of nested runs, in one timeline.")] = False,
        jsonl: Jsonl = False,
        as_json: Annotated[bool, Option("--json", help="Same as --jsonl: one envelope a line.")] = False,
    ) -> None:
        """Print the events of RUN in order: a condensed timeline, or JSON lines."""
        from harness.model.lifecycle import RunStatus  # noqa: PLC0415 - loaded with the log
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run)
        log = project.log(run_id)
        if nested and after:
            raise UsageError("--after counts the events of one run", hint="leave out --after or --nested")
        told = {run_id: after}
        while True:
            # Asked before the events are read, so that none of the last ones is missed.
            over = log.holder(run_id) is None and log.state(run_id).status is not RunStatus.RUNNING
            for envelope in _new(log, run_id, told, nested=nested):
                if jsonl or as_json:
                    sys.stdout.write(output.as_json_text(envelope.as_dict()) + "\n")
                else:
                    where = f"{envelope.task_id or '-':<7} " if nested else ""
                    output.line(f"{envelope.seq:>5}  {envelope.ts[11:23]}  {where}{envelope.summary}")
            sys.stdout.flush()
            if over or not follow or streams.is_unread():
                return
            _wait_for_more(project.database.parent)


def _new(log: Store, run_id: RunId, told: dict[RunId, int], *, nested: bool) -> Iterator[Envelope]:
    """The events that were not told yet."""
    if nested:
        from harness.runs import nested as runs  # noqa: PLC0415 - as above

        yield from runs.timeline(log, run_id, told)
        return
    for envelope in log.events(run_id, told[run_id]):
        told[run_id] = envelope.seq
        yield envelope


def _wait_for_more(folder: Path) -> None:
    """Returns when something beside the database was written, or after a moment in any case."""
    from watchfiles import watch  # noqa: PLC0415 - only --follow needs it

    next(watch(folder, rust_timeout=_PAUSE_MS, yield_on_timeout=True, recursive=False, raise_interrupt=True), None)
