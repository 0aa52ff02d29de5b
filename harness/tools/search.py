"""The tools that look without changing anything: list, find by name, search in files, show what has changed."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

from pydantic import StringConstraints

from harness.errors import ToolFailed
from harness.model import globs, limits
from harness.model.plan import Word
from harness.model.process import Ending
from harness.tools.inside import Inside
from harness.tools.run import PURPOSE
from harness.tools.tool import Arguments, Reach, listed

_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=2_000, pattern=r"^[^\x00\n]+$")]
# By the program of that name, because a bad expression can only hang a process. Lines and their lengths are cut before
# they are collected: one line can be a whole minified file.
_GREP = (
    f'grep -rnIE --exclude-dir=.git -e "$1" -- "$2" | cut -c 1-{limits.TOOL_LINE_CHARS} | head -n {limits.TOOL_MATCHES}'
)
# Untracked files are named, not shown: they are new as a whole and can be read. No program that the repository names is run.
_DIFF = (
    'git -c core.fsmonitor=false diff --no-color --no-ext-diff --no-textconv HEAD -- "$1"'
    ' && git -c core.fsmonitor=false ls-files --others --exclude-standard -- "$1" | sed "s/^/new file: /"'
)


class ListDir(Arguments):
    path: Word = "."


def list_dir(arguments: ListDir, inside: Inside) -> str:
    """Names in order, directories with a slash, links with an @."""
    return listed([f"{name}{mark}" for name, mark in inside.entries(arguments.path)], "(empty)")


class Glob(Arguments):
    pattern: Word


def glob(arguments: Glob, inside: Inside) -> str:
    """Paths that the pattern covers, in the language of `owns`."""
    wrong = globs.problem(arguments.pattern)
    if wrong is not None:
        raise ToolFailed(f"the pattern {wrong[0]}", hint=wrong[1])
    pattern = globs.Pattern(arguments.pattern)
    found = (path for path in islice(inside.files(), limits.TOOL_WALK_FILES) if pattern.covers(path))
    return listed(sorted(found), "nothing matches")


class Grep(Arguments):
    pattern: _Pattern
    path: Word = "."


async def grep(arguments: Grep, reach: Reach) -> str:
    """Lines that match an extended regular expression, with file and number."""
    target = reach.inside.resolved(arguments.path)
    argv = ["sh", "-c", _GREP, "grep", arguments.pattern, target]
    result = await reach.execute(argv, purpose=PURPOSE, env={"LC_ALL": "C.UTF-8"})
    if result.ending is not Ending.EXITED:
        raise ToolFailed(f"the search was ended: {str(result.ending).replace('_', ' ')}")
    return result.output_tail or "nothing matches"


class GitDiff(Arguments):
    path: Word = "."


async def git_diff(arguments: GitDiff, reach: Reach) -> str:
    """The difference to the last commit, its end where it is long, and the names of new files."""
    target = reach.inside.resolved(arguments.path)
    result = await reach.execute(["sh", "-c", _DIFF, "git_diff", f":(literal){target}"], purpose=PURPOSE)
    if not result.ok:
        raise ToolFailed("git could not show the changes", hint=result.output_tail.strip()[-500:])
    return result.output_tail or "nothing has changed"
