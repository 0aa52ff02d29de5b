"""Where reports stand: in the workspace, in the archive of the run, and, for the latest run, in the user's checkout.

Texts and not `Path`: every step writes five of these files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from harness.engine import failpoints
from harness.engine.context import Context
from harness.model import report as model
from harness.model.ids import TaskId

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
SHARED = 0o644  # a file of the user's own folders
_PRIVATE = 0o600


def _build(ctx: Context, task: TaskId) -> model.Report:
    changed = [f"Parent changed while this step ran: {what}" for what in ctx.changed.get(task, [])]
    return model.build(ctx.run_id, ctx.step(task), ctx.journal.facts(task), changed)


def park(ctx: Context, task: TaskId) -> str:
    """Writes the report into the workspace and the archive; returns its path in the workspace."""
    content = model.markdown(_build(ctx, task)).encode()
    relative = ctx.contract(task).report_path
    for workspace in ctx.step(task).workspaces:
        if os.path.isdir(workspace):  # noqa: PTH112 - see above
            _offer(f"{workspace}/{relative}", content)
    replace(_archived(ctx, task, "md"), content)
    return relative


def _offer(path: str, content: bytes, scratch: str | None = None) -> None:
    """The copy beside the work is a courtesy: an agent may have left anything in its place, and the archive has it."""
    with contextlib.suppress(OSError):
        if not os.path.islink(os.path.dirname(path)):  # noqa: PTH114, PTH120 - see above
            replace(path, content, scratch, mode=SHARED)


def archive(ctx: Context, task: TaskId) -> Path:
    return Path(_archived(ctx, task, "md"))


def _archived(ctx: Context, task: TaskId, kind: str) -> str:
    return f"{ctx.run_dir}/step-{task}-result.{kind}"


def finish(ctx: Context, task: TaskId) -> bytes:
    """The archive copy with the final outcome, and its JSON form; returns what the first one holds."""
    report = _build(ctx, task)
    content = model.markdown(report).encode()
    failpoints.hit("before:report")
    replace(_archived(ctx, task, "md"), content)
    replace(_archived(ctx, task, "json"), model.as_json(report).encode())
    failpoints.hit("after:report")
    return content


def place(ctx: Context, task: TaskId, content: bytes) -> None:
    """The latest run's report in the user's checkout, only where git ignores it and nothing is a link.

    Reports that are committed arrive by landing; a copy in their place would be in its way.
    """
    name = f".orchestrix/step-{task}-result.md"
    if ctx.options.reports == "commit" or name in ctx.tracked:
        return
    if os.path.isfile(f"{ctx.parts.checkout}/.orchestrix/.gitignore"):  # noqa: PTH113 - see above
        _offer(f"{ctx.parts.checkout}/{name}", content, scratch=str(ctx.run_dir))


def replace(path: str | Path, content: bytes, scratch: str | None = None, mode: int = _PRIVATE) -> None:
    """Whole or not at all; for this user alone unless `mode` is `SHARED`, which leaves it to the umask."""
    temporary, handle = _temporary(path, scratch, mode)
    try:
        while content:
            content = content[os.write(handle, content) :]
    finally:
        os.close(handle)
    os.replace(temporary, path)  # noqa: PTH105 - see above


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """The same for what is written piece by piece."""
    temporary, handle = _temporary(path)
    with os.fdopen(handle, "wb") as file:
        yield file
    os.replace(temporary, path)  # noqa: PTH105 - see above


def make_folder(folder: str | Path, mode: int = _PRIVATE) -> None:
    """Makes a folder and those above it that are missing, each for this user alone unless `mode` is `SHARED`."""
    path = Path(folder)
    for missing in reversed([place for place in (path, *path.parents) if not place.is_dir()]):
        missing.mkdir(0o777 if mode == SHARED else 0o700, exist_ok=True)


def _temporary(path: str | Path, scratch: str | None = None, mode: int = _PRIVATE) -> tuple[str, int]:
    """A new file that will take the place of `path`, in `scratch` where the user looks at the folder itself.

    What can be in its way is left by a process that died and had the same id.
    """
    folder, name = os.path.split(path)
    folder = scratch or folder or "."
    temporary = f"{folder}/.{name}.{os.getpid()}.tmp"
    try:
        return temporary, os.open(temporary, _NEW, mode)
    except FileNotFoundError:
        make_folder(folder, mode)
    except FileExistsError:
        os.unlink(temporary)  # noqa: PTH108 - see above
    return temporary, os.open(temporary, _NEW, mode)
