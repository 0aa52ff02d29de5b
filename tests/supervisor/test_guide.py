"""The example of seed 001, as written there, and the runnable example of the repository."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from harness.supervisor import (
    GenericSupervisor,
    ModularNode,
    NodeContract,
    NodeInputs,
    NodeOutputs,
    NodeRegistry,
    SubgraphContract,
    SubgraphDefinition,
    TriggerCondition,
    build_graph_from_registry,
    run_registry,
)

ROOT = Path(__file__).resolve().parents[2]


class TrendNode(ModularNode):
    CONTRACT = NodeContract(
        name="trend_node",
        description="Return a fashion trend",
        reads=["request"],
        writes=["response"],
        supervisor="fashion",
        is_terminal=True,
        trigger_conditions=[TriggerCondition(priority=1)],
    )

    async def execute(self, inputs: NodeInputs, config=None) -> NodeOutputs:
        return NodeOutputs(response={"response_type": "fashion_trend", "response_message": "..."})


registry = NodeRegistry()
registry.register(TrendNode)
registry.register_subgraph(
    SubgraphContract(
        subgraph_id="fashion",
        description="Fashion trend subgraph",
        reads=["request"],
        writes=["response"],
        entrypoint="fashion",
    ),
    SubgraphDefinition(subgraph_id="fashion", supervisors=["fashion"], nodes=["trend_node"]),
)


def route_domain(state: dict) -> str | None:
    return "call_subgraph::fashion"


def supervisor_factory(name: str, llm):
    if name == "domain":
        return GenericSupervisor(
            supervisor_name=name, llm=None, registry=registry, explicit_routing_handler=route_domain
        )
    return GenericSupervisor(supervisor_name=name, llm=None, registry=registry)


def built():
    graph = build_graph_from_registry(
        registry=registry,
        supervisors=["domain"],
        llm_provider=lambda: None,
        supervisor_factory=supervisor_factory,
        enable_subgraphs=True,
    )
    graph.set_entry_point("domain_supervisor")
    return graph.compile()


STATE = {"request": {"action": "fashion"}, "response": {}, "_internal": {}}
CHOSE = "explicit_routing: the handler chose 'call_subgraph::fashion'"
CALL = ("SUBGRAPH", "fashion")
TOO_OFTEN = "calling 'fashion' would be visit 3, over max_reentry 2"
MATCHED = "rule_match: trend_node matched (always, priority 1)"


def item(where, supervisor, kind, reason, termination=None):
    step, depth = where
    decision_kind, target = kind
    return {
        "step": step,
        "depth": depth,
        "supervisor": supervisor,
        "decision_kind": decision_kind,
        "target": target,
        "reason": reason,
        "termination_reason": termination,
    }


def test_the_guide_example_stops_on_the_cycle_and_keeps_the_childs_answer():
    """The seed's example ends with cycle_detected, its whole trace is known, and the child's message survives."""
    final = asyncio.run(built().ainvoke(STATE))
    assert final["response"] == {"response_type": "terminal", "response_message": "..."}
    assert final["request"] == STATE["request"]
    assert final["_internal"]["decision_trace"] == [
        item((1, 0), "domain", CALL, CHOSE),
        item((3, 1), "fashion", ("NODE", "trend_node"), MATCHED),
        item((5, 0), "domain", CALL, CHOSE),
        item((7, 1), "fashion", ("NODE", "trend_node"), MATCHED),
        item((9, 0), "domain", CALL, CHOSE),
        item((10, 0), "domain", ("STOP_GLOBAL", "fashion"), TOO_OFTEN, "cycle_detected"),
    ]
    internal = final["_internal"]
    assert internal["visited_subgraphs"] == {"fashion": 2}
    assert internal["call_stack"] == []
    assert internal["step_count"] == 10
    assert internal["decision"] == "done"
    assert internal["budgets"] == {"max_depth": 2, "max_steps": 40, "max_reentry": 2}


def test_the_guide_example_gives_the_same_from_the_native_loop():
    """The native driver ends with the very same state as LangGraph."""
    native = asyncio.run(
        run_registry(
            registry,
            STATE,
            entrypoint="domain_supervisor",
            supervisors=["domain"],
            supervisor_factory=supervisor_factory,
            enable_subgraphs=True,
        )
    )
    assert native == asyncio.run(built().ainvoke(STATE))


def test_the_input_state_is_left_alone():
    """A run does not change the state that it was given."""
    state = {"request": {"action": "fashion"}, "response": {}, "_internal": {}}
    asyncio.run(built().ainvoke(state))
    assert state == STATE


def test_a_second_turn_on_the_final_state_is_the_first_turn_again():
    """Counters, trace and the stop itself belong to one invocation: the same again gives the same."""
    first = asyncio.run(built().ainvoke(STATE))
    assert asyncio.run(built().ainvoke(first)) == first


def test_the_shipped_example_runs():
    """`python -m examples.hierarchical_supervisor_minimal` answers and shows its trace."""
    done = subprocess.run(
        [sys.executable, "-m", "examples.hierarchical_supervisor_minimal"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Trend for 'Fall collection'" in done.stdout
    assert "SUBGRAPH" in done.stdout
