"""`orchestrix report`: what a step was asked, did and left."""

from __future__ import annotations

import sys
from typing import Annotated

from harness.cli import options, output
from harness.cli.declare import App, Option
from harness.cli.options import Directory, Json, Run
from harness.errors import NotFound
from harness.model.visible import visible


def register(app: App) -> None:
    @app.command()
    def report(
        run: Run = "latest",
        step: Annotated[str | None, Option("--step", help="Step index or id (default: the run's summary).")] = None,
        directory: Directory = None,
        as_json: Json = False,
    ) -> None:
        """Print the report of RUN or of one step, as Markdown; on a terminal it is rendered."""
        import json  # noqa: PLC0415 - only for --json

        from harness.cli import select  # noqa: PLC0415 - loaded with the log
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        run_id = project.find_run(run)
        state = project.log(run_id).state(run_id)
        name = "run" if step is None else f"step-{select.step(state, step).task_id}-result"
        raw = project.report(run_id, f"{name}.md")
        if raw is None:
            raise NotFound(f"run {run_id} has no {name}.md yet", hint="reports are written as steps end")
        text = raw.decode("utf-8")
        if as_json:
            found = project.report(run_id, f"{name}.json")
            body = {"report": json.loads(found)} if found else {}
            output.emit({"run_id": run_id, "markdown": text, **body})
        elif sys.stdout.isatty():
            _render(text)
        else:
            sys.stdout.write(text)


def _render(text: str) -> None:
    from rich.console import Console  # noqa: PLC0415 - only terminals pay for it
    from rich.markdown import Markdown  # noqa: PLC0415 - as above

    body = text.split("\n---\n", 1)[-1] if text.startswith("---\n") else text
    Console().print(Markdown(visible(body)))
