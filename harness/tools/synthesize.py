"""The virtual tool that combines texts: the broker reads them, the model that asked answers, without a tool in its hands."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harness.model import limits
from harness.model.fence import fenced
from harness.model.plan import Text, Word
from harness.tools.tool import Arguments, Reach


class Synthesize(Arguments):
    question: Text
    paths: Annotated[list[Word], Field(min_length=1, max_length=limits.SYNTHESIS_FILES)]


async def synthesize(arguments: Synthesize, reach: Reach) -> str:
    """The question with the files as quoted data, each in an equal share of what a model is asked to read."""
    share = limits.TOOL_OUTPUT_CHARS // len(arguments.paths)
    parts = [
        f"## {path}\n{fenced(reach.inside.read(path, limits.TOOL_READ_BYTES).content.decode('utf-8', 'replace')[:share])}"
        for path in arguments.paths
    ]
    return "\n\n".join([arguments.question, *parts])
