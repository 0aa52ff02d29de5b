"""Who takes part in the race for a step."""

from __future__ import annotations

from harness.model.plan import Plan, Step


def of(plan: Plan, step: Step) -> tuple[str, ...]:
    """The agents that do the step side by side; empty when it is done once.

    A number takes the step's own agent so often. A list in `defaults` gives way to a step that names its own way.
    """
    wanted = plan.defaults.candidates if step.candidates is None else step.candidates
    if wanted is None or step.actions is not None:
        return ()
    if isinstance(wanted, int):
        agent = "command" if step.command is not None else step.agent or plan.defaults.agent
        return (agent,) * wanted if agent and wanted > 1 else ()
    if step.candidates is None and (step.command is not None or step.agent is not None):
        return ()
    return tuple(wanted)
