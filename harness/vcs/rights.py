"""What git needs inside a sandbox so that an agent can commit while the shared repository stays unwritable.

The agent's objects go into a directory of its own, mounted where the shared objects are; those stay readable as its
alternate. Only the worktree's admin directory and the step's own ref directory are writable besides.
"""

from __future__ import annotations

import os
from pathlib import Path

from harness.model.changes import Workspace
from harness.ports import AgentRights

# Inside the sandbox's own /tmp; the path stands in the alternates file, so it must be the same for every step.
_SHARED_OBJECTS = Path("/tmp/.orchestrix-shared-objects")  # noqa: S108 - never created outside a sandbox


def own_objects(workspace: Workspace) -> Path:
    """Where the agent's objects land, out of its tree."""
    return workspace.private / "objects"


def of(workspace: Workspace, common_dir: Path) -> AgentRights:
    """The rights of this workspace's agent; its object directory is made ready."""
    objects = own_objects(workspace)
    # Once: what an agent left there may lead anywhere.
    if not os.path.lexists(objects):
        os.makedirs(f"{objects}/info")  # noqa: PTH103 - for every step, as all of this
        with open(f"{objects}/info/alternates", "w", encoding="utf-8") as file:  # noqa: PTH123 - as above
            file.write(f"{_SHARED_OBJECTS}\n")
    writable = [workspace.admin, objects]
    if workspace.branch is not None:
        folder = workspace.branch.rpartition("/")[0]
        writable += [common_dir / folder, common_dir / "logs" / folder]
    for path in writable:
        if not os.path.isdir(path):  # noqa: PTH112 - as above
            path.mkdir(parents=True, exist_ok=True)
    shared = common_dir / "objects"
    return AgentRights(
        writable=tuple(writable),
        readable=(common_dir,),
        mounts=((shared, _SHARED_OBJECTS, False), (objects, shared, True)),
    )
