"""`orchestrix audit`: does the log still say what was written?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.cli import options, output
from harness.cli.declare import App, Argument, Option
from harness.cli.options import Directory, Json
from harness.errors import Exit, StoreCorrupt


def register(app: App) -> None:
    @app.command()
    def audit(
        run: Annotated[str | None, Argument(metavar="RUN", help="One run (default: all).")] = None,
        directory: Directory = None,
        database: Annotated[Path | None, Option("--db", help="Audit this database file instead.")] = None,
        as_json: Json = False,
    ) -> int:
        """Verify hash chain, sequence and rows of the log; exit 5 when something does not verify."""
        from harness.engine.clock import SystemClock  # noqa: PLC0415 - loaded with the log
        from harness.model.ids import RunId  # noqa: PLC0415 - as above
        from harness.ports import Store  # noqa: PLC0415 - as above
        from harness.store.sqlite import SqliteStore  # noqa: PLC0415 - as above
        from harness.wiring import Project  # noqa: PLC0415 - as above

        if database is not None:
            store: Store = SqliteStore.open_existing(database, SystemClock())
            runs = [RunId(run)] if run else store.run_ids()
        else:
            project = Project.at(options.here(directory))
            runs = [project.find_run(run)] if run else project.reading.run_ids()
            store = project.log(runs[0]) if run else project.reading
        problems = {run_id: found for run_id in runs if (found := store.audit(run_id))}
        data = {"runs": len(runs), "intact": not problems, "problems": problems}
        if as_json and problems:
            output.failure(
                StoreCorrupt(f"{len(problems)} runs do not verify", hint="restore from a record or backup"),
                as_json=True,
                data=data,
            )
        elif as_json:
            output.emit(data)
        else:
            for run_id, found in problems.items():
                for problem in found:
                    output.line(f"{run_id}: {problem}")
            output.line(f"{len(runs)} runs audited: {'intact' if not problems else 'NOT intact'}")
        return Exit.VIOLATION if problems else Exit.OK
