"""Where reports stand: in the workspace, in the archive of the run, and, for the latest run, in the user's checkout."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from harness.engine import failpoints
from harness.engine.context import Context
from harness.model import report as model
from harness.model.ids import TaskId


def _build(ctx: Context, task: TaskId) -> model.Report:
    changed = [f"Parent changed while this step ran: {what}" for what in ctx.changed.get(task, [])]
    return model.build(ctx.run_id, ctx.step(task), ctx.journal.facts(task), changed)


def park(ctx: Context, task: TaskId) -> str:
    """Writes the report into the workspace and the archive; returns its path in the workspace."""
    content = model.markdown(_build(ctx, task)).encode()
    relative = ctx.contract(task).report_path
    for workspace in map(Path, ctx.step(task).workspaces):
        if workspace.is_dir():
            _offer(workspace / relative, content)
    replace(archive(ctx, task), content)
    return relative


def _offer(path: Path, content: bytes, scratch: Path | None = None) -> None:
    """The copy beside the work is a courtesy: an agent may have left anything in its place, and the archive has it."""
    with contextlib.suppress(OSError):
        if not path.parent.is_symlink():
            replace(path, content, scratch)


def archive(ctx: Context, task: TaskId) -> Path:
    return ctx.run_dir / f"step-{task}-result.md"


def finish(ctx: Context, task: TaskId) -> bytes:
    """The archive copy with the final outcome, and its JSON twin; returns what the first one holds."""
    report = _build(ctx, task)
    content = model.markdown(report).encode()
    failpoints.hit("before:report")
    replace(archive(ctx, task), content)
    twin = json.dumps(report.as_dict(), ensure_ascii=False)
    replace(archive(ctx, task).with_suffix(".json"), twin.encode())
    failpoints.hit("after:report")
    return content


def place(ctx: Context, task: TaskId, content: bytes) -> None:
    """The latest run's report in the user's checkout, only where git ignores it and nothing is a link.

    Reports that are committed arrive by landing; a copy in their place would be in its way.
    """
    folder = ctx.parts.checkout / ".orchestrix"
    if ctx.options.reports == "commit" or folder.is_symlink() or not (folder / ".gitignore").is_file():
        return
    path = folder / f"step-{task}-result.md"
    if f".orchestrix/{path.name}" not in ctx.tracked:
        _offer(path, content, scratch=ctx.run_dir)


def replace(path: Path, content: bytes, scratch: Path | None = None) -> None:
    """Whole or not at all."""
    with replacing(path, scratch) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: Path, scratch: Path | None = None) -> Iterator[BinaryIO]:
    """A temporary file, in `scratch` where the user looks at the folder itself, that takes the place of `path` in the end."""
    folder = os.fspath(path.parent)
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - on the way of every step: without objects for paths
    temporary = f"{scratch or folder}/.{path.name}.{os.getpid()}.tmp"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)  # noqa: PTH108 - as above
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "wb") as file:
        yield file
    os.replace(temporary, path)  # noqa: PTH105 - as above
