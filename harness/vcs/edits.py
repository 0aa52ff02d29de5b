"""What a step changed, exact to the byte: read from two trees, and laid into a workspace again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from harness.errors import UsageError
from harness.model.changes import Edit
from harness.model.ids import TreeId
from harness.vcs.git import Git, text

_ABSENT, _GITLINK = "000000", "160000"
_NOTHING = "0" * 40


def between(git: Git, old: str, new: str) -> list[Edit]:
    """Every path that differs between two trees; raises UsageError for a submodule, whose content no tree holds."""
    items = git.run("diff-tree", "-r", "-z", "--no-renames", "--raw", old, new).items()
    found = []
    for about, path in zip(items[::2], items[1::2], strict=True):
        before, after, _, blob, _ = about.decode().removeprefix(":").split(" ")
        if _GITLINK in (before, after):
            raise UsageError(f"{text(path)} is a submodule: its files are in no snapshot", hint="leave that step out")
        gone = after == _ABSENT
        found.append(Edit(path, None if gone else after, None if gone else blob))
    return found


def lay(git: Git, pristine: Path, start: str, edits: Iterable[Edit], wanted: TreeId) -> None:
    """Makes the files of the git's work tree those of `wanted`; `pristine` is the index of what is there now.

    Git writes them, so that modes, links, line endings and encodings are what a checkout gives. Raises UsageError when
    the edits do not lead from `start` to `wanted`; git leaves out names that no checkout may hold.
    """
    with tempfile.TemporaryDirectory(prefix="edits-", dir=pristine.parent.parent) as folder:
        index = Path(folder) / "index"
        door = Git(git.git_dir, git.work_tree, index, git.objects, git.alternate)
        door.run("read-tree", start)
        door.run("update-index", "-z", "--index-info", stdin=b"".join(map(_line, edits)))
        made = door.run("write-tree").out.decode().strip()
        if made != wanted:
            raise UsageError(f"its edits make tree {made[:12]}, not {wanted[:12]}")
        shutil.copy2(pristine, index)
        door.run("read-tree", "--reset", "-u", wanted)


def _line(edit: Edit) -> bytes:
    return f"{edit.mode or _ABSENT} {edit.blob or _NOTHING}\t".encode() + edit.path + b"\0"
