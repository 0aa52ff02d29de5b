"""`orchestrix clean`: remove what is merged or kept."""

from __future__ import annotations

from typing import Annotated

from harness.cli import options, output
from harness.cli.declare import App, Option
from harness.cli.options import Directory, Json


def register(app: App) -> None:
    @app.command()
    def clean(
        directory: Directory = None,
        dry_run: Annotated[bool, Option("--dry-run", help="Only say what would go.")] = False,
        as_json: Json = False,
    ) -> None:
        """Remove workspaces and branches whose work is merged or kept; nothing else."""
        from harness.runs import clean as cleaning  # noqa: PLC0415 - loaded with the log
        from harness.wiring import Project  # noqa: PLC0415 - as above

        project = Project.at(options.here(directory))
        gone = cleaning.clean(project, dry_run=dry_run)
        stuck = cleaning.stuck(project)
        if as_json:
            rows = [{"run_id": item.run_id, "what": item.what, "why": item.why} for item in gone]
            resisting = [{"what": str(path), "remove": command} for path, command in stuck]
            output.emit({"removed": rows, "dry_run": dry_run, "stuck": resisting})
            return
        for item in gone:
            output.line(f"{'would remove' if dry_run else 'removed'} {item.what}: {item.why}")
        for path, command in stuck:
            output.say(f"warning: {path} cannot be removed ({command})")
        if not gone:
            output.line("nothing to clean")
