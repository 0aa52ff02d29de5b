"""The supervisor of the nodes: it hands out the router's decisions, one at a time, and ends the turn after the last."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from harness.model import limits
from harness.orchestrator.decision import Decision
from harness.supervisor import GenericSupervisor
from harness.supervisor.decisions import DONE
from harness.supervisor.slices import State

NAME: Final = "router"
ROUTING: Final = "routing"


class RoutingSupervisor(GenericSupervisor):
    """The router is its explicit handler; the decision itself becomes the slice that nodes read."""

    def __init__(self, queue: deque[Decision]) -> None:
        super().__init__(NAME, max_iterations=2 * limits.TICK_DECISIONS, explicit_routing_handler=self._next)
        self._queue = queue
        self._current: Decision | None = None

    def _next(self, _state: State) -> str:
        self._current = self._queue.popleft() if self._queue else None
        return self._current.chosen_node if self._current else DONE

    async def run(self, state: State, config: Any = None) -> dict[str, Any]:
        updates = await super().run(state, config)
        return updates | {ROUTING: self._current._asdict() if self._current else {}}
