"""The tool that finds files by their names."""

from __future__ import annotations

from itertools import islice

from harness.errors import ToolFailed
from harness.model import globs, limits
from harness.model.plan import Word
from harness.tools.inside import Inside
from harness.tools.tool import Arguments, listed


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
