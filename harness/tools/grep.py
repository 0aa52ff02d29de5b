"""The tool that searches in files: by the program of its name, because a bad expression can only hang a process."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from harness.errors import ToolFailed
from harness.model import limits
from harness.model.plan import Word
from harness.model.process import Ending
from harness.tools.run import PURPOSE
from harness.tools.tool import Arguments, Reach

_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=2_000, pattern=r"^[^\x00\n]+$")]
# Lines and their lengths are cut before they are collected: one line can be a whole minified file.
_SCRIPT = (
    f'grep -rnIE --exclude-dir=.git -e "$1" -- "$2" | cut -c 1-{limits.TOOL_LINE_CHARS} | head -n {limits.TOOL_MATCHES}'
)


class Grep(Arguments):
    pattern: _Pattern
    path: Word = "."


async def grep(arguments: Grep, reach: Reach) -> str:
    """Lines that match an extended regular expression, with file and number."""
    target = reach.inside.resolved(arguments.path)
    argv = ["sh", "-c", _SCRIPT, "grep", arguments.pattern, target]
    result = await reach.execute(argv, purpose=PURPOSE, env={"LC_ALL": "C.UTF-8"})
    if result.ending is not Ending.EXITED:
        raise ToolFailed(f"the search was ended: {str(result.ending).replace('_', ' ')}")
    return result.output_tail or "nothing matches"
