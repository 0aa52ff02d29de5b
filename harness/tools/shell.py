"""The tool that gives a model a shell, in the sandbox of the step."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

from harness.errors import ToolFailed
from harness.model import limits
from harness.model.plan import Word
from harness.model.process import Ending
from harness.tools.run import PURPOSE
from harness.tools.tool import Arguments, Reach


class Shell(Arguments):
    command: Word
    timeout_s: Annotated[int, Field(ge=1, le=limits.SHELL_CEILING_S)] = limits.SHELL_S


async def shell(arguments: Shell, reach: Reach) -> str:
    """Exit code and the end of the output; a failing command is an answer, a command that had to be ended is not."""
    try:
        async with asyncio.timeout(arguments.timeout_s):
            result = await reach.execute(["sh", "-c", arguments.command], purpose=PURPOSE)
    except TimeoutError as error:
        raise ToolFailed(
            f"`{arguments.command:.200}` did not end within {arguments.timeout_s} seconds", hint="give it a `timeout_s`"
        ) from error
    if result.ending is not Ending.EXITED:
        raise ToolFailed(
            f"`{arguments.command:.200}` was ended: {result.message or str(result.ending).replace('_', ' ')}",
            ending=str(result.ending),
            exit_code=result.exit_code,
        )
    return f"exit code {result.exit_code}\n{result.output_tail}"
