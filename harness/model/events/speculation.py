"""Facts about gates that were begun before their step's turn; none of them is a verdict."""

from __future__ import annotations

from dataclasses import field

from harness.model.events.fact import StepFact, line

AHEAD = "ahead"  # how the purpose of a workspace begins that was opened before its step's turn


class GateSpeculated(StepFact):
    """Intent: the step's checks are about to run on what its merge will be if every step in `assumes` passes."""

    type = "gate.speculated"
    head: str
    commit: str
    tree: str
    assumes: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        return f"step {self.task} is gated ahead, assuming that {', '.join(self.assumes)} pass"


class SpeculationHeld(StepFact):
    """The step's turn came to the commit that was gated ahead: what its checks showed there now counts."""

    type = "gate.speculation_held"
    commit: str

    @property
    def summary(self) -> str:
        return f"step {self.task} was gated ahead on the right tree"


class SpeculationDiscarded(StepFact):
    """What was found ahead counts for nothing."""

    type = "gate.speculation_discarded"
    commit: str
    why: str

    @property
    def summary(self) -> str:
        return f"step {self.task} was gated ahead for nothing: {line(self.why)}"
