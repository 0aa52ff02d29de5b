"""`orchestrix ci`: a run without a person, with everything that a CI system keeps of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from harness.cli import options
from harness.cli.declare import App, Argument, Option
from harness.cli.options import Directory, Jobs, Json, Quiet, Sandbox, Speculate, Workspace

if TYPE_CHECKING:
    from harness.ci.job import Job
    from harness.ci.result import Result


def register(app: App) -> None:
    @app.command()
    def ci(
        plan: Annotated[str, Argument(metavar="PLAN", help="The plan file (YAML or JSON), or - for stdin.")],
        directory: Directory = None,
        base: Annotated[str | None, Option(help="Start from this revision (default: HEAD).")] = None,
        into: Annotated[str | None, Option(metavar="BRANCH", help="The branch to land on.")] = None,
        land: Annotated[bool, Option("--land", help="Fast-forward the branch when everything succeeded.")] = False,
        jobs: Jobs = None,
        sandbox: Sandbox = None,
        workspace: Workspace = None,
        speculate: Speculate = None,
        artifacts: Annotated[
            Path | None,
            Option(metavar="DIR", help="Where to leave reports (default: .orchestrix/local/ci)."),
        ] = None,
        strict_parent: Annotated[bool, Option(help="Fail steps during which the parent checkout changed.")] = True,
        as_json: Json = False,
        quiet: Quiet = False,
    ) -> int:
        """Run PLAN in a CI job: events, JUnit XML, reports, and on GitHub a summary, outputs and annotations."""
        from harness.ci import console, surroundings  # noqa: PLC0415 - the engine is loaded by the commands that run
        from harness.ci.job import Job, Order  # noqa: PLC0415 - as above
        from harness.cli import outcome, progress  # noqa: PLC0415 - as above
        from harness.runs.start import RunOverrides  # noqa: PLC0415 - as above

        order = Order(
            plan=plan,
            directory=options.here(directory),
            flags={
                "jobs": jobs,
                "sandbox": sandbox,
                "workspace.kind": workspace,
                "speculate": speculate,
                "strict_parent": strict_parent,
            },
            overrides=RunOverrides(base=base, into=into),
            land=land,
            artifacts=artifacts and artifacts.absolute(),
        )
        job = Job(order, surroundings.read(os.environ))
        with console.guarded() as (out, err):
            with progress.watching(quiet=quiet or as_json) as watch:
                result = job.run(watch, outcome.notices)
            if job.around.obeys:
                (err if as_json else out).obey(job.runner_log(result))
            _tell(job, result, as_json=as_json)
        return result.exit_code


def _tell(job: Job, result: Result, *, as_json: bool) -> None:
    from harness.cli import outcome, output  # noqa: PLC0415 - loaded with the run

    state = result.state
    if job.project and state and state.exit_code is not None and not (as_json and result.error):
        outcome.finish(job.project, state, as_json=as_json)
    if result.error is not None:
        output.failure(result.error, as_json=as_json, data=result.data())
    for problem in result.unpublished:
        output.failure(problem, as_json=False)
