"""`orchestrix list`: every run of this repository."""

from __future__ import annotations

from typing import Annotated

from harness.cli import options, output
from harness.cli.declare import App, Option
from harness.cli.options import Directory, Json


def register(app: App) -> None:
    @app.command(name="list")
    def list_runs(
        directory: Directory = None,
        everything: Annotated[bool, Option("--all", help="Nested runs, too.")] = False,
        as_json: Json = False,
    ) -> None:
        """List runs, newest first."""
        from harness.model import view  # noqa: PLC0415 - loaded with the log
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        runs = []
        if project.database.exists():
            for run_id in reversed(project.reading.run_ids()):
                state = project.reading.state(run_id)
                if everything or state.parent_run is None:
                    runs.append(view.run(state, held=project.reading.holder(run_id) is not None))
        recorded = [project.log(run_id).state(run_id) for run_id in reversed(project.recorded())]
        runs += [view.run(state, held=False) for state in recorded if everything or state.parent_run is None]
        if as_json:
            output.emit({"runs": runs})
            return
        if not runs:
            output.say("no runs yet: orchestrix run PLAN starts one")
        for run in runs:
            merged = sum(step["final_status"] == "completed" for step in run["steps"])
            goal = " ".join(run["goal"].split())[:60]
            output.line(f"{run['run_id']}  {run['status']:<9}  {merged}/{len(run['steps'])}  {goal}")
