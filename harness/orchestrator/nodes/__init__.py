"""One file for each node, and the registry that holds them all."""

from __future__ import annotations

from harness.orchestrator.nodes.classifier import Classifier
from harness.orchestrator.nodes.complexity_analyzer import ComplexityAnalyzer
from harness.orchestrator.nodes.error_fallback import ErrorFallback
from harness.orchestrator.nodes.finalizer import Finalizer
from harness.orchestrator.nodes.initial_planner import InitialPlanner
from harness.orchestrator.nodes.spawn_subagent import SpawnSubAgent
from harness.orchestrator.nodes.subagent_executor import SubAgentExecutor
from harness.orchestrator.nodes.subagent_finalizer import SubAgentFinalizer
from harness.orchestrator.nodes.task_executor import TaskExecutor
from harness.orchestrator.nodes.task_planner import TaskPlanner
from harness.orchestrator.nodes.task_updater import TaskUpdater
from harness.supervisor import NodeRegistry

ALL = (
    InitialPlanner,
    ComplexityAnalyzer,
    TaskExecutor,
    SpawnSubAgent,
    SubAgentExecutor,
    SubAgentFinalizer,
    TaskUpdater,
    TaskPlanner,
    ErrorFallback,
    Classifier,
    Finalizer,
)


def registry() -> NodeRegistry:
    """The nodes under the router; either driver of the supervisor can run it."""
    made = NodeRegistry(valid_slices=["routing", "workflow"])
    for node in ALL:
        made.register(node)
    return made
