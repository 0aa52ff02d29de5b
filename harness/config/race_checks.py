"""What a race in a plan must make sense of."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.needs import Problem
from harness.model.plan import Plan, Step


def check(idx: int, step: Step, plan: Plan) -> Iterator[Problem]:
    """Everything wrong with a step's `candidates` and `budget`."""
    wanted = step.candidates
    where = ("steps", idx, "candidates")
    if wanted is not None and step.actions is not None:
        yield Problem(where, "the same actions give the same result each time", "remove `candidates`")
    elif isinstance(wanted, list):
        own = next((name for name in ("command", "agent") if getattr(step, name) is not None), None)
        if own:
            yield Problem(where, f"a list of agents and `{own}` both say who does the step", f"remove `{own}`")
        for name in ("actions", "command"):
            if name in wanted:
                yield Problem(where, f"the agent {name} cannot be one of several", "name agents of the settings")
    if step.budget is not None and wanted is None and plan.defaults.candidates is None:
        yield Problem(
            ("steps", idx, "budget"), "limits how many candidates start, but there is one", "add `candidates`"
        )
