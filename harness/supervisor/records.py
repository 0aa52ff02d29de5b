"""The bookkeeping values of a turn, as types; in the state they are plain dicts and lists."""

from __future__ import annotations

from dataclasses import asdict, field
from typing import Any

from harness.errors import UsageError
from harness.model import supervision
from harness.model.late import dataclass
from harness.model.supervision import DecisionKind, TerminationReason


@dataclass(frozen=True, slots=True)
class Budgets(supervision.Budgets):
    """The limits of one turn, as a state holds them."""

    @classmethod
    def of(cls, raw: Any) -> Budgets:
        """Read budgets from a state; what is missing gets its default.

        Raises:
            UsageError: a budget is not a whole number, or `raw` is no mapping.
        """
        if raw is None:
            return cls()
        if isinstance(raw, Budgets):
            return raw
        if not isinstance(raw, dict):
            raise UsageError(
                f"_internal.budgets is a {type(raw).__name__}, not a mapping",
                hint='write {"max_depth": 2, "max_steps": 40, "max_reentry": 2}',
            )
        return cls(**{name: _whole(name, raw[name]) for name in cls.__dataclass_fields__ if raw.get(name) is not None})

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(str(value))
    except ValueError:
        raise UsageError(f"budget {name} is {value!r}, not a whole number", hint="0 allows nothing") from None


@dataclass(frozen=True, slots=True)
class CallStackFrame:
    """One subgraph that is being executed."""

    subgraph_id: str
    depth: int
    entry_step: int
    locals: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class DecisionTraceItem:
    """One routing decision, and why; `termination_reason` is filled on safe stops only."""

    step: int
    depth: int
    supervisor: str | None
    decision_kind: DecisionKind
    target: str | None = None
    reason: str | None = None
    termination_reason: TerminationReason | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
