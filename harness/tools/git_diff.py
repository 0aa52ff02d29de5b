"""The tool that shows what has changed in the workspace."""

from __future__ import annotations

from harness.errors import ToolFailed
from harness.model.plan import Word
from harness.tools.run import PURPOSE
from harness.tools.tool import Arguments, Reach

# Untracked files are named, not shown: they are new as a whole and can be read. No program that the repository names is run.
_SCRIPT = (
    'git -c core.fsmonitor=false diff --no-color --no-ext-diff --no-textconv HEAD -- "$1"'
    ' && git -c core.fsmonitor=false ls-files --others --exclude-standard -- "$1" | sed "s/^/new file: /"'
)


class GitDiff(Arguments):
    path: Word = "."


async def git_diff(arguments: GitDiff, reach: Reach) -> str:
    """The difference to the last commit, its end where it is long, and the names of new files."""
    target = reach.inside.resolved(arguments.path)
    result = await reach.execute(["sh", "-c", _SCRIPT, "git_diff", f":(literal){target}"], purpose=PURPOSE)
    if not result.ok:
        raise ToolFailed("git could not show the changes", hint=result.output_tail.strip()[-500:])
    return result.output_tail or "nothing has changed"
