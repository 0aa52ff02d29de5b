"""Runs told in facts, folded as the store folds them, and a reader that knows the runner's rules."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.ci.result import Result, cases
from harness.errors import OrchestrixError
from harness.model import events as ev
from harness.store.memory import MemoryStore
from tests.store import samples
from tests.store.samples import RUN, HandClock, of


def told(facts: Sequence[ev.Fact], tails: dict[str, str] | None = None, error: OrchestrixError | None = None) -> Result:
    """The result of a run of which the log says this."""
    store = MemoryStore(HandClock())
    store.append(store.acquire(RUN, {"pid": 1}), facts)
    state = store.state(RUN)
    return Result(state, error, cases(state, store.events(RUN), tails or {}))


def mixed(title: str = "a step", message: str = "it broke", output: str = "compiling\n") -> Result:
    """One step merged, one failed with this message and output, one skipped because of it."""
    second, third = of(1), of(2)
    return told(
        [
            samples.run_created(3),
            samples.run_started(),
            *samples.merged_step(**of(0)),
            ev.SubagentCreated(**second, title=title, step_id=None, contract={}),
            *samples.failed_step(**second)[1:3],
            samples.attempt_finished(ok=False, reason="agent_failed", **second),
            ev.SubagentFailed(**second, reason="agent_failed", message=message, kept_ref="refs/orchestrix/keep/r1/1/x"),
            samples.closed("failed", "agent_failed", **second),
            samples.created(**third),
            ev.SubagentFailed(**third, reason="dependency_failed", message="step 2 needs step 1, which failed"),
            samples.closed("failed", "dependency_failed", **third),
            samples.run_finished("failed", 1),
        ],
        {"1": output},
    )


def obeyed(text: str) -> list[str]:
    """The lines that a runner would take for commands."""
    return [line for line in re.split(r"[\r\n]", text) if line.lstrip().startswith("::") or "##[" in line]


def outputs_in(text: str) -> dict[str, str]:
    """Outputs as a runner reads its file; anything out of form is an error."""
    found: dict[str, str] = {}
    lines = iter(text.split("\n")[:-1])
    for line in lines:
        name, delimiter = line.split("<<", 1)
        value: list[str] = []
        while (part := next(lines)) != delimiter:
            value.append(part)
        found[name] = "\n".join(value)
    return found
