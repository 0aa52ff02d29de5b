"""One decision, one call: every node of the catalogue is a function in one table."""

from __future__ import annotations

import inspect

from harness.orchestrator import router
from harness.orchestrator.nodes import NODES

CATALOGUE = {
    "initial_planner",
    "classifier",
    "complexity_analyzer",
    "task_executor",
    "spawn_subAgent",
    "subAgent_executor",
    "subAGENT_finalizer",
    "task_updater",
    "task_planner",
    "error_fallback",
    "finalizer",
}


def test_every_node_of_the_catalogue_is_in_the_table_under_its_name():
    """The names are those of the specification, and the router knows no other."""
    named = {value for name, value in vars(router).items() if name.isupper() and isinstance(value, str)}
    assert set(NODES) == CATALOGUE == named


def test_every_node_is_a_plain_async_function_of_a_run_and_a_task():
    """Nothing stands between a decision and its node."""
    for name, node in NODES.items():
        assert inspect.iscoroutinefunction(node), name
        assert len(inspect.signature(node).parameters) == 2, name
        assert (inspect.getdoc(node) or "").startswith(f"{name}: "), name
