"""Options of the commands that plan, each spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from harness.cli.declare import Argument, Option
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.runs.planning import Terms

Goal = Annotated[str, Argument(metavar="GOAL", help="What is wanted, in words.")]
Agents = Annotated[
    list[str] | None, Option("--agent", metavar="NAME", help="Who may do steps; the first by default (builtin).")
]
Checks = Annotated[list[str] | None, Option("--check", metavar="COMMAND", help="A command that every step must pass.")]
MaxSteps = Annotated[int | None, Option("--max-steps", min=1, help="Steps that the plan may have (20).")]
ContextFile = Annotated[
    Path | None, Option("--context", metavar="FILE", help="Further text that the planner is shown.")
]


def terms(agents: list[str] | None, checks: list[str] | None, max_steps: int | None, context: Path | None) -> Terms:
    """What the options say; the defaults are those of `Terms`."""
    from harness.runs.planning import Terms  # noqa: PLC0415 - loaded with the planner

    plain = Terms()
    return Terms(
        agents=tuple(agents) if agents else plain.agents,
        checks=tuple(checks or ()),
        max_steps=max_steps or plain.max_steps,
        context="" if context is None else _read(context),
    )


def _read(path: Path) -> str:
    from harness.config import reading  # noqa: PLC0415 - as above
    from harness.model import limits  # noqa: PLC0415 - as above

    try:
        return reading.text(path, limits.CONFIG_BYTES)[0]
    except reading.Unreadable as error:
        raise UsageError(f"{path} {error}", hint="give --context a text file") from error
