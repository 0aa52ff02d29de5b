"""Options that several commands share, each spelled once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from harness.cli.declare import Argument, Option
from harness.errors import UsageError


def enter(directory: Path | None) -> Path | None:
    """Work as if started in that directory; files named on the command line stay relative to where the user is."""
    if directory is not None and not directory.is_dir():
        raise UsageError(f"{directory} is not a directory", hint="give -C an existing directory")
    return directory


Directory = Annotated[Path | None, Option("-C", metavar="DIR", help="The repository to work on.")]
Json = Annotated[bool, Option("--json", help="Print one JSON envelope on stdout.")]
Jsonl = Annotated[bool, Option("--jsonl", help="Print events as JSON lines on stdout.")]
Run = Annotated[str, Argument(metavar="RUN", help="Run id, an unambiguous prefix of one, or `latest`.")]
Step = Annotated[str, Argument(metavar="STEP", help="Step index or id.")]
StepArgument = Annotated[str | None, Argument(metavar="STEP", help="Step index or id.")]
Jobs = Annotated[int | None, Option("-j", "--jobs", min=1, help="Steps at once (default: cores).")]
Sandbox = Annotated[
    Literal["auto", "bwrap", "none"] | None, Option("--sandbox", help="How programs of a step are confined.")
]
Speculate = Annotated[
    int | None, Option("--speculate", metavar="N", min=0, help="Gates begun before their turn (default: 0).")
]
Workspace = Annotated[
    Literal["auto", "overlay", "checkout", "sparse"] | None,
    Option("--workspace", help="How the files of a workspace are made."),
]
Budget = Annotated[
    list[str] | None,
    Option(
        "--budget",
        metavar="NAME=VALUE",
        help="What the run may use: tokens, cost_usd, attempts, wall_time, max_steps, max_depth, max_reentry.",
    ),
]
Note = Annotated[str, Option("--note", help="Why, for the log.")]
Quiet = Annotated[bool, Option("-q", "--quiet", help="No progress on stderr.")]


def here(directory: Path | None) -> Path:
    """The directory that the command works on."""
    found = enter(directory)
    return (found or Path(os.curdir)).resolve()
