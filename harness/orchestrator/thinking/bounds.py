"""What planned steps may be at most: the person's choice, which a model's answer can narrow and never widen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.model import globs, limits, within
from harness.model.contract import Contract
from harness.model.late import dataclass
from harness.model.plan import Command

if TYPE_CHECKING:
    from harness.orchestrator.thinking.answers import PlanAnswer, PlannedStep

# What steers git, the harness or its tools is changed by people, not by what a model read somewhere.
_RESERVED = (".git", ".gitmodules", ".orchestrix", ".mcp.json")


@dataclass(frozen=True, slots=True)
class Bounds:
    """`agents` are on offer, the first by default; `owns` None is the whole repository; `checks` bind every step.

    `depth` is that of the steps to plan (0 for those of a run), `max_depth` the deepest that steps may be.
    """

    agents: tuple[str, ...]
    tools: tuple[str, ...]
    checks: tuple[Command, ...] = ()
    owns: tuple[str, ...] | None = None
    depth: int = 0
    max_depth: int = limits.DELEGATION_DEPTH
    max_steps: int = limits.PLANNED_STEPS
    timeout_ms: int | None = None
    retries: int | None = None

    @property
    def splits(self) -> bool:
        """Whether planned steps may be split again."""
        return self.depth < self.max_depth


def of_step(contract: Contract, agents: Sequence[str], *, depth: int) -> Bounds:
    """The bounds of the steps that one step is split into, which are on level `depth`: all that it had, no more."""
    permissions = contract.permissions
    return Bounds(
        agents=tuple(agents),
        tools=permissions.allowed_tools,
        owns=contract.ownership.paths,
        depth=depth,
        max_depth=depth + max(permissions.max_delegation_depth - 1, 0),
        timeout_ms=contract.execution.attempt_timeout_ms,
        retries=contract.execution.max_retries,
    )


def problems(answer: PlanAnswer, bounds: Bounds) -> list[str]:
    """Everything in an answer that lies beyond the bounds, as sentences for the model."""
    found = []
    if len(answer.steps) > bounds.max_steps:
        found.append(f"steps: there are {len(answer.steps)}; at most {bounds.max_steps} are allowed: merge some")
    found += [
        f"steps[{idx}].{field}: {message}"
        for idx, step in enumerate(answer.steps[: limits.PLAN_STEPS])
        for field, message in _beyond(step, bounds)
    ]
    return found[: limits.PLAN_PROBLEMS]


def _beyond(step: PlannedStep, bounds: Bounds) -> Iterator[tuple[str, str]]:
    if step.agent is not None and step.agent not in bounds.agents:
        yield "agent", f"there is no agent {step.agent!r:.80}; on offer: {', '.join(bounds.agents)}"
    unknown = [tool for tool in step.tools or [] if tool not in bounds.tools]
    if unknown:
        yield "tools", f"not on offer: {', '.join(map(repr, unknown))[:200]}; on offer: {', '.join(bounds.tools)}"
    good = [pattern for pattern in step.owns if globs.problem(pattern) is None]  # the others are the plan check's
    wide = within.outside(good, bounds.owns)
    if wide:
        yield "owns", f"not within what may be owned: {', '.join(wide)[:200]}; narrow it, or take a pattern as offered"
    reserved = [pattern for pattern in good if pattern.split("/", 1)[0].lower() in _RESERVED]
    if reserved:
        yield "owns", f"planned steps never own {', '.join(reserved)[:200]}"
