"""`orchestrix reject`: mark an escalated step as failed."""

from __future__ import annotations

from harness.cli import deciding
from harness.cli.declare import App
from harness.cli.options import Directory, Json, Jsonl, Note, Quiet, Run, Step


def register(app: App) -> None:
    @app.command()
    def reject(
        run: Run,
        step: Step,
        directory: Directory = None,
        note: Note = "",
        as_json: Json = False,
        jsonl: Jsonl = False,
        quiet: Quiet = False,
    ) -> int:
        """Mark an escalated STEP of RUN as failed, and carry on with the run."""
        told = deciding.Told(approved=False, note=note)
        return deciding.decide(run, step, told, directory, as_json=as_json, jsonl=jsonl, quiet=quiet)
