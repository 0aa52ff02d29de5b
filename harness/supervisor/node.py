"""The base class of a node: its contract decides what it sees and what it may change."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from inspect import isawaitable
from typing import Any, ClassVar

from harness.supervisor.contracts import NodeContract
from harness.supervisor.slices import NodeInputs, NodeOutputs, State, isolate, isolated

_log = logging.getLogger("harness.supervisor")


class ModularNode(ABC):
    """One unit of work; a subclass sets `CONTRACT` and writes `execute`.

    Services named in the contract become attributes. `execute` may be a plain function too.
    """

    CONTRACT: ClassVar[NodeContract]

    def __init__(self, llm: Any = None, **services: Any) -> None:
        self.llm = llm
        self._services = services
        for name in self.CONTRACT.services:
            if name in services:
                setattr(self, name, services[name])

    @abstractmethod
    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:
        """Do the work on the slices that the contract reads; return the slices that it writes."""

    async def __call__(self, state: State, config: Any = None) -> dict[str, Any]:
        """Run on a whole state and return the declared slice updates; undeclared ones are dropped and logged."""
        contract = self.CONTRACT
        inputs = NodeInputs(**isolated(state, contract.reads))
        outputs: Any = self.execute(inputs, config=config)
        if isawaitable(outputs):
            outputs = await outputs
        updates = _updates_of(outputs)
        undeclared = [name for name in updates if name not in contract.writes]
        if undeclared:
            _log.warning("node %r wrote undeclared slices %s; they are dropped", contract.name, sorted(undeclared))
            return {name: value for name, value in updates.items() if name not in undeclared}
        return updates


def _updates_of(outputs: Any) -> dict[str, Any]:
    if outputs is None:
        return {}
    if isinstance(outputs, NodeOutputs):
        return outputs.to_state_updates()
    if isinstance(outputs, dict):
        return {name: isolate(value) for name, value in outputs.items() if value is not None}
    raise TypeError(f"execute returned {type(outputs).__name__}; return NodeOutputs(slice={{...}})")
