"""Hierarchical supervisors: contract nodes, a registry, subgraph calls, budgets, allowlists and a decision trace.

Importing this package does not import langgraph; only `GraphBuilder` and `build_graph_from_registry` do, when they are used.
"""

from harness.supervisor.contracts import NodeContract, SubgraphContract, SubgraphDefinition, TriggerCondition
from harness.supervisor.decisions import (
    HierarchicalDecision,
    MatchedRule,
    RoutingDecision,
    RoutingReason,
    SupervisorDecision,
)
from harness.supervisor.drivers.native import run_registry
from harness.supervisor.generic import GenericSupervisor
from harness.supervisor.graph import GraphBuilder, build_graph_from_registry
from harness.supervisor.node import ModularNode
from harness.supervisor.records import Budgets, CallStackFrame, DecisionTraceItem
from harness.supervisor.refusals import RegistryInvalid
from harness.supervisor.registry import NodeRegistry
from harness.supervisor.slices import NodeInputs, NodeOutputs
from harness.supervisor.triggers import TriggerMatch

__all__ = [
    "Budgets",
    "CallStackFrame",
    "DecisionTraceItem",
    "GenericSupervisor",
    "GraphBuilder",
    "HierarchicalDecision",
    "MatchedRule",
    "ModularNode",
    "NodeContract",
    "NodeInputs",
    "NodeOutputs",
    "NodeRegistry",
    "RegistryInvalid",
    "RoutingDecision",
    "RoutingReason",
    "SubgraphContract",
    "SubgraphDefinition",
    "SupervisorDecision",
    "TriggerCondition",
    "TriggerMatch",
    "build_graph_from_registry",
    "run_registry",
]
