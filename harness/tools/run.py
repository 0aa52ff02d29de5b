"""The tool that runs a command of the step."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from harness.errors import ToolFailed
from harness.model.plan import Command
from harness.model.process import Ending
from harness.ports import Execute

PURPOSE = "tool"


class Run(BaseModel):
    """Run a command: a list as it is, one string by `sh -c`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    command: Command


async def run(arguments: Run, execute: Execute) -> str:
    """The end of the output; raises ToolFailed with `ending` and `exit_code` unless it exited with 0."""
    command = arguments.command
    argv = ["sh", "-c", command] if isinstance(command, str) else command
    result = await execute(argv, purpose=PURPOSE)
    if result.ok:
        return result.output_tail
    shown = command if isinstance(command, str) else " ".join(command)
    how = result.message or (
        f"exit code {result.exit_code}" if result.ending is Ending.EXITED else str(result.ending).replace("_", " ")
    )
    raise ToolFailed(
        f"`{shown:.200}`: {how}",
        hint=result.output_tail.strip()[-500:],
        ending=str(result.ending),
        exit_code=result.exit_code,
    )
