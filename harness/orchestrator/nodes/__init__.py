"""The nodes of a run: what a routing decision calls. `NODES[decision.node](run, task)`; `task` is None for the run as a whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from harness.orchestrator import router
from harness.orchestrator.nodes import goal, nested, task
from harness.orchestrator.run import Run

NODES: dict[str, Callable[[Run, Any], Awaitable[None]]] = {
    router.INITIAL: goal.plan,
    router.CLASSIFIER: goal.classify,
    router.FINALIZER: goal.finalize,
    router.EXECUTOR: task.execute,
    router.UPDATER: task.integrate,
    router.PLANNER: task.give_up,
    router.FALLBACK: task.fall_back,
    router.ANALYZER: nested.analyse,
    router.SPAWN: nested.spawn,
    router.NESTED: nested.execute,
    router.REJOIN: nested.rejoin,
}
