"""The supervisor of the nodes: it hands out the router's decisions, one at a time, and ends the turn after the last."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from harness.model import limits
from harness.orchestrator.decision import Decision
from harness.supervisor.decisions import DONE
from harness.supervisor.slices import INTERNAL, State, internal_of

NAME: Final = "router"
ROUTING: Final = "routing"
_HANDED_OUT: Final = f"{NAME}_iteration"


class RoutingSupervisor:
    """The router has decided already: nothing is left to match or to ask; the decision is the slice that nodes read."""

    def __init__(self, queue: deque[Decision]) -> None:
        self._queue = queue

    async def run(self, state: State, config: Any = None) -> dict[str, Any]:  # noqa: ARG002 - the protocol's signature
        """The next decision; a turn has an end, however many an earlier coordinator left."""
        count = internal_of(state).get(_HANDED_OUT, 0)
        if not self._queue or count >= limits.TICK_DECISIONS:
            return {INTERNAL: {"decision": DONE}, ROUTING: {}}
        current = self._queue.popleft()
        return {
            INTERNAL: {"decision": current.chosen_node, _HANDED_OUT: count + 1},
            ROUTING: current._asdict(),
        }
