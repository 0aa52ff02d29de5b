"""What routing depends on besides the state: the order of the plan and the bounds of the run."""

from __future__ import annotations

from harness.engine.context import Context
from harness.model.late import dataclass
from harness.model.schedule import Schedule
from harness.orchestrator import personas


@dataclass(frozen=True, slots=True)
class Policies:
    """Fixed for the life of a coordinator."""

    order: Schedule
    jobs: int
    priorities: tuple[int, ...]
    stop_at_failure: bool = False
    persona: str = personas.PERFORM_TASK
    plans: bool = False  # whether the run began with a goal

    @classmethod
    def of(cls, ctx: Context) -> Policies:
        return cls(
            order=ctx.schedule,
            jobs=ctx.options.jobs,
            priorities=tuple(step.priority for step in ctx.plan.steps),
            stop_at_failure=ctx.plan.on_failure == "stop",
            plans=bool(ctx.options.planning),
            persona=ctx.nest.within.persona or personas.SUBAGENT if ctx.nest else personas.PERFORM_TASK,
        )
