"""`orchestrix events`: the log of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from harness.cli import options, output, streams
from harness.cli.declare import App, Option
from harness.cli.options import Directory, Jsonl, Run

_PAUSE_MS = 500


def register(app: App) -> None:
    @app.command()
    def events(
        run: Run = "latest",
        directory: Directory = None,
        follow: Annotated[bool, Option("-f", "--follow", help="Wait for more until the run ends.")] = False,
        after: Annotated[int, Option(help="Only events after this seq.")] = 0,
        jsonl: Jsonl = False,
        as_json: Annotated[bool, Option("--json", help="Same as --jsonl: one envelope a line.")] = False,
    ) -> None:
        """Print the events of RUN in order: a condensed timeline, or JSON lines."""
        from harness.model.lifecycle import RunStatus  # noqa: PLC0415 - loaded with the log
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run)
        log = project.log(run_id)
        seen = after
        while True:
            # Asked before the events are read, so that none of the last ones is missed.
            over = log.holder(run_id) is None and log.state(run_id).status is not RunStatus.RUNNING
            for envelope in log.events(run_id, seen):
                seen = envelope.seq
                if jsonl or as_json:
                    sys.stdout.write(output.as_json_text(envelope.as_dict()) + "\n")
                else:
                    output.line(f"{envelope.seq:>5}  {envelope.ts[11:23]}  {envelope.summary}")
            sys.stdout.flush()
            if over or not follow or streams.is_unread():
                return
            _wait_for_more(project.database.parent)


def _wait_for_more(folder: Path) -> None:
    """Returns when something beside the database was written, or after a moment in any case."""
    from watchfiles import watch  # noqa: PLC0415 - only --follow needs it

    next(watch(folder, rust_timeout=_PAUSE_MS, yield_on_timeout=True, recursive=False, raise_interrupt=True), None)
