"""What the contracts of all nodes have in common: they read the decision and act through services."""

from __future__ import annotations

from harness.model.ids import TaskId
from harness.orchestrator.supervisor import NAME, ROUTING
from harness.supervisor import NodeContract, NodeInputs


def contract(name: str, description: str, *services: str, is_terminal: bool = False) -> NodeContract:
    return NodeContract(
        name=name,
        description=description,
        reads=[ROUTING],
        writes=["workflow"],
        services=list(services),
        supervisor=NAME,
        is_terminal=is_terminal,
    )


def task_of(inputs: NodeInputs) -> TaskId:
    """The task that the decision is about."""
    return TaskId(inputs.get_slice(ROUTING)["task_id"])
