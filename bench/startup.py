"""What the quick commands cost beyond a bare interpreter."""

from __future__ import annotations

import sys
from functools import partial

from bench.places import MODULE, Place, script
from bench.timing import Comparison, Turn, compare, spend

BARE = "python -c pass"
SITELESS = "python -S -c pass"
LIMITS = {"orchestrix --version": 8.0, "orchestrix status": 20.0, "orchestrix validate": 20.0}


def measure(place: Place, rounds: int) -> Comparison:
    """The installed entry point and, for comparison, the module: an editable install makes the first one slower."""
    repo = place.repo
    spend([*script(), "run", place.plan, "--sandbox", "none"], repo, place.env)
    turns: dict[str, Turn] = {BARE: partial(spend, [sys.executable, "-c", "pass"], repo, place.env)}
    # An editable install puts its finder into every start of the interpreter: this one shows what that hides.
    turns[SITELESS] = partial(spend, [sys.executable, "-S", "-c", "pass"], repo, place.env)
    for shown, program in (("orchestrix", script()), ("python -m harness", MODULE)):
        for name, *arguments in (("--version",), ("status",), ("validate", place.plan)):
            turns[f"{shown} {name}"] = partial(spend, [*program, name, *arguments], repo, place.env)
    return compare(turns, BARE, LIMITS, rounds)
