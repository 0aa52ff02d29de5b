"""The harness as a node: `call_subgraph::<plan>` runs a plan in worktrees and answers with the run's result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

from harness.errors import UsageError
from harness.supervisor.contracts import NodeContract, SubgraphContract, SubgraphDefinition, TriggerCondition
from harness.supervisor.node import ModularNode
from harness.supervisor.registry import NodeRegistry
from harness.supervisor.slices import NodeInputs, NodeOutputs

Plan = str | Path | Mapping[str, Any]

SERVICE = "plan_runner"
RESPONSE_TYPE = "plan_run"


class PlanRunner(Protocol):
    """Runs a plan to its end and returns the data of `orchestrix run --json`: run_id, status, exit_code, head, steps.

    A LangGraph node is run again after an interrupt, so a runner that is called twice for one run should resume it.
    """

    async def __call__(self, plan: Plan, **options: Any) -> dict[str, Any]: ...


class RunPlanNode(ModularNode):
    """Runs the plan that `PLAN` holds, or else the one in `request.plan` (with `request.options`).

    The response has `response_type="plan_run"`, a one-line message, and the run's data in `response_data`; route on
    `response.response_data.status`. A runner that raises is a child failure.
    """

    CONTRACT: ClassVar[NodeContract] = NodeContract(
        name="run_plan",
        description="Runs a plan: every step by an agent in its own worktree, merged in plan order",
        reads=["request"],
        writes=["response"],
        services=[SERVICE],
        supervisor="plans",
        is_terminal=True,
        trigger_conditions=[TriggerCondition(priority=1, when={"request.plan": True})],
    )
    PLAN: ClassVar[Plan | None] = None
    OPTIONS: ClassVar[Mapping[str, Any]] = {}

    async def execute(self, inputs: NodeInputs, config: Any = None) -> NodeOutputs:  # noqa: ARG002 - the base's shape
        runner: PlanRunner | None = getattr(self, SERVICE, None)
        if runner is None:
            raise UsageError(
                f"node {self.CONTRACT.name!r} has no {SERVICE}", hint=f"pass {SERVICE}=... when building the graph"
            )
        request = inputs.get_slice("request")
        plan = self.PLAN if self.PLAN is not None else request.get("plan")
        if not plan:
            raise UsageError("there is no plan to run", hint="put a path or a plan into request.plan")
        options = request.get("options")
        data = await runner(plan, **{**self.OPTIONS, **(options if isinstance(options, dict) else {})})
        return NodeOutputs(
            response={"response_type": RESPONSE_TYPE, "response_message": _line(data), "response_data": data}
        )


def register_plan(
    registry: NodeRegistry, plan_id: str, plan: Plan | None = None, *, description: str = "", **options: Any
) -> None:
    """Make a plan callable as `call_subgraph::<plan_id>`; without `plan` it is read from `request.plan` at the call.

    Raises:
        RegistryInvalid: the id is taken or reserved.
    """
    text = description or f"Runs the plan {plan_id}"
    supervisor = f"{plan_id}_plan"
    contract = RunPlanNode.CONTRACT.model_copy(
        update={"name": f"run_plan_{plan_id}", "description": text, "supervisor": supervisor}
    )
    node = type(f"RunPlan_{plan_id}", (RunPlanNode,), {"CONTRACT": contract, "PLAN": plan, "OPTIONS": options})
    registry.register_subgraph(
        SubgraphContract(
            subgraph_id=plan_id,
            description=text,
            reads=contract.reads,
            writes=contract.writes,
            entrypoint=contract.name,
        ),
        SubgraphDefinition(subgraph_id=plan_id, supervisors=[supervisor], nodes=[contract.name]),
    )
    registry.register(node)


def _line(data: Mapping[str, Any]) -> str:
    steps = data.get("steps")
    counted = f", {len(steps)} steps" if isinstance(steps, (list, tuple, dict)) else ""
    return f"run {data.get('run_id', '?')}: {data.get('status', 'unknown')}{counted}"
